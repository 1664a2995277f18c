// Taking a mutex for a client: the request, the place in the table, the try and the wait. server.go routes it here;
// table.go keeps the place and then the lease, lease.go has what the client does with it.

package lockapi

import (
	"context"
	"crypto/rand"
	"errors"
	"net/http"
	"regexp"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// acquireRequest is the body of an acquisition.
type acquireRequest struct {
	ID    string   `json:"id"` // of the lease; chosen by the client, it makes the request safe to repeat
	Name  string   `json:"name"`
	TTL   *float64 `json:"ttl"`  // seconds
	Wait  *float64 `json:"wait"` // seconds
	Label string   `json:"label"`
}

// goodID is what a client may name its lease. At least 16 characters, so that it can be as hard to guess as the client
// likes.
var goodID = regexp.MustCompile(`^[A-Za-z0-9_-]{16,64}$`)

// acquire takes a mutex for a client, which renews it from then on. It answers 201 with the lease, and 200 to a client
// that repeats the request because it has not heard the answer.
//
// The place in the table is reserved before the engine is asked: so a repeated request never asks for a second lock,
// and no lease is taken that has no room. The library does not renew the lease (NoRenew), because the client's silence
// must end it.
func (s *Server) acquire(w http.ResponseWriter, r *http.Request, by string) error {
	var q acquireRequest
	if err := readJSON(w, r, &q, false); err != nil {
		return err
	}
	if q.ID == "" {
		q.ID = rand.Text()
	} else if !goodID.MatchString(q.ID) {
		return invalid("id must be 16 to 64 letters, digits, - or _")
	}
	if len(q.Label) > maxLabel {
		return invalid("label has more than 128 bytes")
	}
	ttl, err := seconds("ttl", q.TTL, defaultTTL, minTTL, maxTTL)
	if err != nil {
		return err
	}
	wait, err := seconds("wait", q.Wait, 0, 0, maxWait)
	if err != nil {
		return err
	}
	// Everything that can be wrong with the request was checked before it gets a place.
	taken, err := s.table.reserve(&s.active, q.ID, q.Name, by)
	if err != nil {
		return err
	}
	if taken != nil {
		answerLease(w, http.StatusOK, taken)
		return nil
	}
	defer s.active.Done()
	mutex := s.locks.Mutex(q.Name, &interlock.LockOptions{Lease: ttl, NoRenew: true, Label: labelOf(by, q.Label)})
	lease, err := s.take(w, r, q.Name, mutex, wait)
	if err != nil {
		s.table.cancel(q.ID)
		return err
	}
	h := newHeld(q.ID, by, lease, ttl)
	if !s.keep(r, h) {
		return errEnding() // or the client has gone, and hears nothing
	}
	w.Header().Set("Location", "/v1/leases/"+h.id)
	answerLease(w, http.StatusCreated, h)
	return nil
}

// labelOf is what operators see beside the holder: the token's name, as far as there is room, and the client's label.
func labelOf(by, label string) string {
	if label != "" {
		label = ": " + label
	}
	return driver.CutLabel(by, driver.MaxLabel-len(label)) + label
}

// keep puts the lease into the table, unless its client has gone or the server is ending. Then nobody knows its id, so
// the lock is given back at once.
func (s *Server) keep(r *http.Request, h *held) bool {
	if r.Context().Err() == nil && s.table.put(h) {
		return true
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), s.o.Timeout)
	defer cancel()
	_ = h.lease.Unlock(ctx) // what is not confirmed in time goes on in the background
	s.table.cancel(h.id)    // not before: a request that is repeated would find the lock held
	return false
}

// take locks the mutex: it tries, and then waits if the client wants that. The engine's answer to the try has
// Options.Timeout, however short the wait is: wait is the time for the lock, not for the engine.
func (s *Server) take(
	w http.ResponseWriter, r *http.Request, name string, mutex *interlock.Mutex, wait time.Duration,
) (*interlock.Lease, error) {
	ctx, cancel := context.WithTimeout(r.Context(), s.o.Timeout)
	defer cancel()
	defer context.AfterFunc(s.ending, cancel)()
	lease, err := mutex.TryLock(ctx)
	if wait > 0 && errors.Is(err, interlock.ErrHeld) {
		lease, err = s.wait(w, r, name, mutex, wait)
	}
	// The server's end has cancelled the wait, which the client should not take for a lock that is held.
	if err != nil && s.ending.Err() != nil {
		return nil, errEnding()
	}
	return lease, err
}

// wait locks the mutex as soon as it is free, within limit. It ends early when the client goes or the server closes.
func (s *Server) wait(
	w http.ResponseWriter, r *http.Request, name string, mutex *interlock.Mutex, limit time.Duration,
) (*interlock.Lease, error) {
	ctx, cancel := context.WithTimeout(r.Context(), limit)
	defer cancel()
	defer context.AfterFunc(s.ending, cancel)()
	// The server's own limits for reading and writing are shorter than a wait. Reading has to go on, because it is how
	// the server learns that the client has gone.
	control := http.NewResponseController(w)
	_ = control.SetReadDeadline(time.Time{}) // a server without deadlines has its own rules
	_ = control.SetWriteDeadline(time.Now().Add(limit + s.o.Timeout))
	// The holder of the lock, if it is a client of this server, is told that another one waits; see table.wait.
	defer s.table.wait(name)()
	lease, err := mutex.Lock(ctx)
	if errors.Is(err, context.DeadlineExceeded) && !errors.Is(err, interlock.ErrUnavailable) &&
		!errors.Is(err, interlock.ErrHeld) {
		return nil, problemf(http.StatusConflict, "held", "the wait ended before the lock was free")
	}
	return lease, err
}
