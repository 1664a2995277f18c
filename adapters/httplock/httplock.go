// Package httplock serves one HTTP request per key at a time, across all processes that serve the same locks: orders of
// one customer, changes of one document, requests with one idempotency key.
//
//	serve := httplock.Middleware(func(r *http.Request) *interlock.Mutex {
//		return locks.Mutex("order:"+r.PathValue("id"), nil)
//	}, nil)
//	mux.Handle("POST /orders/{id}", serve(orders))
//
// A request that may not go on is answered for the handler:
//
//   - 409 Conflict (or Options.HeldStatus), with Retry-After: another request holds the lock.
//   - 409 Conflict, without: waiting would not help, since the request's owner waits for itself, or the lock is in
//     use with other parameters.
//   - 503 Service Unavailable, with Retry-After: the engine does not answer, so nobody knows.
//   - 500 Internal Server Error: the lock's name or options are wrong.
//
// The lock keeps requests from overlapping as long as their handlers heed the request's context, which ends when the
// lock is lost. What must not be done by a handler that was paused past its lease belongs behind a fence: see [Lease].
package httplock

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/interlock-go/interlock"
)

const (
	defaultRetryAfter = time.Second

	// releaseTimeout bounds how long a response waits for its lock's release, which goes on in
	// the background after that.
	releaseTimeout = 5 * time.Second
)

// Options configures a middleware. nil means all defaults.
type Options struct {
	// Wait is how long a request waits for its lock, at the longest as long as its own context. Too long, and requests
	// pile up behind a slow one. The default is not to wait.
	Wait time.Duration

	// HeldStatus is the answer if another request holds the lock: 409 Conflict, which clients of idempotency keys
	// expect, or 423 Locked, which WebDAV and Terraform clients do. The default is 409.
	HeldStatus int

	// RetryAfter is what the client is told to wait, in whole seconds, rounded up. The default is 1 s.
	RetryAfter time.Duration

	// Refuse, if not nil, answers for the handler instead of the plain text of the default. The status and Retry-After
	// are what the default would send; the header is set and not written yet.
	Refuse func(w http.ResponseWriter, r *http.Request, status int, err error)

	// Lost, if not nil, is told when the lock was lost before the handler returned. The response
	// may have been sent already.
	Lost func(r *http.Request, err error)

	_ struct{}
}

func (o *Options) withDefaults() Options {
	c := Options{}
	if o != nil {
		c = *o
	}
	if c.HeldStatus == 0 {
		c.HeldStatus = http.StatusConflict
	}
	if c.HeldStatus != http.StatusConflict && c.HeldStatus != http.StatusLocked {
		panic(fmt.Sprintf("httplock: Options.HeldStatus %d: it must be 409 or 423", c.HeldStatus))
	}
	if c.RetryAfter == 0 {
		c.RetryAfter = defaultRetryAfter
	}
	if c.Wait < 0 || c.RetryAfter < 0 {
		panic("httplock: Options.Wait and Options.RetryAfter must not be negative")
	}
	if c.Refuse == nil {
		c.Refuse = func(w http.ResponseWriter, _ *http.Request, status int, _ error) {
			http.Error(w, text(status), status)
		}
	}
	return c
}

// text is what a client is told. Owners and engines are not for strangers, so it says no more.
func text(status int) string {
	switch status {
	case http.StatusConflict, http.StatusLocked:
		return "another request for the same thing is being served"
	case http.StatusServiceUnavailable:
		return "locks cannot be taken now"
	default:
		return http.StatusText(status)
	}
}

// Middleware returns a middleware whose handler runs while it holds the mutex that mutex returns for the request; nil
// is a request that needs none. The request's context ends when the lock is lost, with the *interlock.LostError as its
// cause, and carries the owner: a Lock with it re-enters. The lock is released when the handler has returned or
// panicked, before the response is complete, so whoever has read the response finds it free. For that the last byte of
// a response with a Content-Length waits for the release, at the longest 5 s; so a file is copied and not sent by the
// kernel.
//
// It panics if mutex is nil, and on options that contradict themselves. A request costs two round trips to the engine,
// and one if it is refused.
func Middleware(mutex func(r *http.Request) *interlock.Mutex, opts *Options) func(http.Handler) http.Handler {
	if mutex == nil {
		panic("httplock: Middleware needs the function that names a request's mutex")
	}
	o := opts.withDefaults()
	return func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			m := mutex(r)
			if m == nil {
				next.ServeHTTP(w, r)
				return
			}
			lease, err := o.acquire(r.Context(), m)
			if err != nil {
				o.refuse(w, r, err)
				return
			}
			o.serve(w, r, next, lease)
		})
	}
}

func (o *Options) acquire(ctx context.Context, m *interlock.Mutex) (*interlock.Lease, error) {
	if o.Wait == 0 {
		return m.TryLock(ctx)
	}
	ctx, cancel := context.WithTimeout(ctx, o.Wait)
	defer cancel()
	return m.Lock(ctx)
}

// serve runs the handler under the lease.
func (o *Options) serve(w http.ResponseWriter, r *http.Request, next http.Handler, lease *interlock.Lease) {
	parent := r.Context()
	held, rest := hold(w, r)
	returned := false
	defer func() {
		ctx, cancel := context.WithTimeout(context.WithoutCancel(parent), releaseTimeout)
		defer cancel()
		// What is not confirmed in time is released in the background: the handler's work was protected.
		if err := lease.Unlock(ctx); errors.Is(err, interlock.ErrLost) && o.Lost != nil {
			o.Lost(r, err)
		}
		if returned { // the response of a handler that panicked must not look whole
			rest()
		}
	}()
	next.ServeHTTP(held, r.WithContext(context.WithValue(lease.Context(parent), leaseKey{}, lease)))
	returned = true
}

// refuse answers for the handler.
func (o *Options) refuse(w http.ResponseWriter, r *http.Request, err error) {
	status, retry := o.status(err)
	if retry {
		seconds := (o.RetryAfter + time.Second - 1) / time.Second
		w.Header().Set("Retry-After", strconv.FormatInt(int64(seconds), 10))
	}
	o.Refuse(w, r, status, err)
}

// status is the answer to an error of Lock, and whether the client should come again.
func (o *Options) status(err error) (status int, retry bool) {
	hopeless := []error{interlock.ErrDeadlock, interlock.ErrNested, interlock.ErrConflict, interlock.ErrLost}
	for _, target := range hopeless {
		if errors.Is(err, target) {
			return http.StatusConflict, false
		}
	}
	switch {
	case errors.Is(err, interlock.ErrHeld):
		return o.HeldStatus, true
	case errors.Is(err, interlock.ErrUnavailable), errors.Is(err, interlock.ErrClosed),
		errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return http.StatusServiceUnavailable, true
	}
	return http.StatusInternalServerError, false
}

type leaseKey struct{}

// Lease returns the lease under which a handler of this package runs, for its Stamp, which a fence
// checks, and its Deadline.
func Lease(ctx context.Context) (lease *interlock.Lease, ok bool) {
	lease, ok = ctx.Value(leaseKey{}).(*interlock.Lease)
	return lease, ok
}
