// A lease as its client sees it, and what the client does with it: look, renew, release. server.go routes these
// requests to ofLease; acquire.go has made the lease, events.go streams what becomes of it.

package lockapi

import (
	"context"
	"errors"
	"net/http"
	"strconv"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
)

// The limits of what a client may ask for.
const (
	defaultTTL = 30 * time.Second
	minTTL     = time.Second // shorter ones end while the answer travels
	maxTTL     = 24 * time.Hour
	maxWait    = 10 * time.Minute
	maxLabel   = 128 // bytes
)

// leaseObject is a lease as its client sees it.
type leaseObject struct {
	ID    string `json:"id"`
	Name  string `json:"name"`
	State string `json:"state"` // held, lost or released

	// Token is a text, because JavaScript rounds large numbers.
	Token string `json:"token"`
	// Stamp is the value of the header Interlock-Stamp, while the lease is held.
	Stamp string `json:"stamp,omitempty"`

	Deadline  string  `json:"deadline"`
	Remaining float64 `json:"remaining"` // seconds until then: clocks of client and server may differ
	Wanted    bool    `json:"wanted"`    // another client waits
	Reason    string  `json:"reason,omitempty"`
}

// tokenText is a token in decimal digits, or nothing.
func tokenText(token uint64) string {
	if token == 0 {
		return ""
	}
	return strconv.FormatUint(token, 10)
}

// object describes the lease now, and the stamp that a resource checks while the lease is held.
func (h *held) object() (o leaseObject, header http.Header) {
	header = http.Header{}
	deadline := h.lease.Deadline()
	o = leaseObject{
		ID: h.id, Name: h.lease.Name(), State: "held", Token: tokenText(h.lease.Token()), Deadline: timeText(deadline),
	}
	// A lease that was lost and one that was released are told apart: after a loss the client must stop.
	var lost *interlock.LostError
	if err := h.lease.Err(); errors.As(err, &lost) {
		o.State, o.Reason = "lost", string(lost.Reason)
		return o, header
	} else if err != nil {
		o.State = "released"
		return o, header
	}
	if stamp, ok := h.lease.Stamp(); ok { // it may have ended just now: then the next request tells of it
		fence.SetHeader(header, stamp)
		o.Stamp = header.Get(fence.Header)
	}
	o.Remaining = max(0, float64(time.Until(deadline).Milliseconds())/1000)
	o.Wanted = isClosed(h.lease.Wanted()) || isClosed(h.wantedC)
	return o, header
}

// isClosed reports whether c is closed. Nothing is ever sent on these channels.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// answerLease sends the lease, and its stamp as a header too.
func answerLease(w http.ResponseWriter, status int, h *held) {
	o, header := h.object()
	if stamp := header.Get(fence.Header); stamp != "" {
		w.Header().Set(fence.Header, stamp)
	}
	answer(w, status, o)
}

// ofLease finds the lease that the path names, for handlers that need one.
func (s *Server) ofLease(do func(w http.ResponseWriter, r *http.Request, h *held) error) handler {
	return func(w http.ResponseWriter, r *http.Request, by string) error {
		h, err := s.table.get(r.PathValue("id"), by)
		if err != nil {
			return err
		}
		return do(w, r, h)
	}
}

// look answers with the lease. It asks no engine.
func (s *Server) look(w http.ResponseWriter, _ *http.Request, h *held) error {
	answerLease(w, http.StatusOK, h)
	return nil
}

// renewRequest is the body of a renewal, which may be empty.
type renewRequest struct {
	TTL *float64 `json:"ttl"` // seconds
}

// renew moves the deadline on. It never moves it back: a ttl that is shorter than what is left changes nothing. An
// empty body means the ttl of the acquisition.
func (s *Server) renew(w http.ResponseWriter, r *http.Request, h *held) error {
	var q renewRequest
	if err := readJSON(w, r, &q, true); err != nil {
		return err
	}
	ttl, err := seconds("ttl", q.TTL, h.ttl, minTTL, maxTTL)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.Context(), s.o.Timeout)
	defer cancel()
	if err := h.lease.Extend(ctx, ttl); err != nil {
		return err
	}
	answerLease(w, http.StatusOK, h)
	return nil
}

// release gives the lock back. A client that has not heard the answer may ask again, and hears success once more.
func (s *Server) release(w http.ResponseWriter, r *http.Request, h *held) error {
	ctx, cancel := context.WithTimeout(r.Context(), s.o.Timeout)
	defer cancel()
	err := h.lease.Unlock(ctx)
	if errors.Is(err, interlock.ErrLost) {
		return err
	}
	h.released() // also if the engine has not confirmed it: the library goes on
	if err != nil && !errors.Is(err, interlock.ErrReleased) {
		return err
	}
	w.WriteHeader(http.StatusNoContent)
	return nil
}

// forget lets the library forget a lease that has ended. After a loss this asks no engine.
func forget(h *held) { _ = h.lease.Unlock(context.Background()) }
