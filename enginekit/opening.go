// Opening: the error of an engine that cannot be opened, and below what waits no longer than a context. The engine
// gives the facts; the text is made here, so that it looks alike for all engines.

package enginekit

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// OpenError says that no lock can be taken through a URL or a client: the servers cannot be reached, refuse us, or are
// not the right ones. It matches driver.ErrUnavailable, and driver.ErrRefused as well if Refused is set; it unwraps to
// Err. Engine, Servers and Err must be set.
type OpenError struct {
	Engine  string // the word with which the engine's errors begin, such as "redis"
	Servers string // what was asked, as people know it: addresses, or the path of a socket
	Err     error  // what went wrong
	Text    string // Err in one line without what Servers says already; empty means the text of Err
	Hint    string // what to do about it; empty if that is not known
	// Refused says that the servers have answered no, and would again. The error then also unwraps to a
	// driver.RefusedError with Hint.
	Refused bool
}

// Error names the servers, what went wrong and, if Hint says it, what to do: "redis: cannot use host:6379: EOF (name
// the TLS port)".
func (e *OpenError) Error() string {
	text := e.Text
	if text == "" {
		text = e.Err.Error()
	}
	s := e.Engine + ": cannot use " + e.Servers + ": " + text
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Is matches driver.ErrUnavailable, unless Refused is set: a refusal matches it through what it unwraps to, and says
// more.
func (e *OpenError) Is(t error) bool { return t == driver.ErrUnavailable && !e.Refused }

// Unwrap returns Err, or if Refused is set a driver.RefusedError around it.
func (e *OpenError) Unwrap() error {
	if e.Refused {
		return &driver.RefusedError{Op: "open", Err: e.Err, Hint: e.Hint}
	}
	return e.Err
}

// Closing what may hang. Engines call it where their open fails, before they return an [OpenError], and where they
// close clients whose servers may have stopped answering.

// CloseWithin calls closing, and returns when that returns or ctx ends, whichever is first. Closing the connections to
// a hanging server takes a while, and a caller whose time is over must not wait for it.
func CloseWithin(ctx context.Context, closing func() error) {
	closed := make(chan struct{})
	go func() { // ends with closing
		defer close(closed)
		_ = closing()
	}()
	select {
	case <-closed:
	case <-ctx.Done():
	}
}

// Waiting that ends with a context, for the loops of engines that try again.

// Pause blocks for d and reports true, or reports false as soon as ctx ends. If both have happened it may report
// either. If d is not positive it returns at once, and is no test of ctx. It costs one timer, which is stopped when
// Pause returns.
func Pause(ctx context.Context, d time.Duration) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
		return false
	}
}
