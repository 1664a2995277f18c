// The error of an engine that cannot be opened. The engine gives the facts; the text is made here, so that it looks
// alike for all engines.

package enginekit

import "github.com/interlock-go/interlock/driver"

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
