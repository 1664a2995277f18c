package enginekit

import "github.com/interlock-go/interlock/driver"

// OpenError says that no lock can be taken through a URL or a client: the servers cannot be reached, do not let us in,
// or are not those that they should be. It matches driver.ErrUnavailable, and driver.ErrRefused as well if Refused is
// set; it unwraps to Err. Engine, Servers and Err must be set.
type OpenError struct {
	Engine  string // the word with which the engine's errors begin, such as "redis"
	Servers string // what was asked, as people know it: addresses, or the path of a socket
	Err     error  // what went wrong
	Text    string // Err in one line without what Servers says already; empty means the text of Err
	Hint    string // what to do about it; empty if the engine does not know
	Refused bool   // the servers have answered no, and would again: it also unwraps to a driver.RefusedError with Hint
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

// Is matches driver.ErrUnavailable, unless Refused: a refusal matches it by what it unwraps to, and says more.
func (e *OpenError) Is(t error) bool { return t == driver.ErrUnavailable && !e.Refused }

// Unwrap returns Err, or if Refused a driver.RefusedError around it.
func (e *OpenError) Unwrap() error {
	if e.Refused {
		return &driver.RefusedError{Op: "open", Err: e.Err, Hint: e.Hint}
	}
	return e.Err
}
