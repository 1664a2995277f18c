package driver

import (
	"errors"
	"fmt"
	"slices"
)

// Refusals, and what an error says about the outcome of an operation (docs/rationale.md, Classes of errors).

// ErrRefused says that the engine said no, and that asking again does not help by itself. A right is missing, there is
// no room, the server is read-only, or the key or path belongs to another program. See RefusedError.
var ErrRefused = errors.New("refused by the engine")

// RefusedError says that the engine answered and refused, why, and what to do about it. Unless Open, nothing was
// changed. It matches ErrRefused, and ErrUnavailable as well, so that code which knows of no refusals goes on treating
// it as trouble: check for ErrRefused first. It unwraps to what the engine said.
//
// What passes by itself (a failover, a server that loads its data, too many requests for the moment) is no refusal but
// an UnavailableError with NotSent.
type RefusedError struct {
	Op   string // what was asked for: "acquire", "release" and so on
	Name string // of the lock; empty if the operation is about none
	Err  error  // what the engine said, without passwords and without what other programs have stored
	Hint string // what to do about it; empty if the driver does not know

	// Open says that the refusal may not cover everything that the operation left. An earlier copy of the request may
	// still be carried out, or its place in a queue is left. It is then undone as after an UnavailableError.
	Open bool
}

// Error names the operation, what the engine said, and what to do about it.
func (e *RefusedError) Error() string {
	s := "the engine refused, and nothing was changed"
	if e.Open {
		s = "the engine refused"
	}
	s = about(e.Op, e.Name, s, e.Err)
	if e.Hint != "" {
		s += " (" + e.Hint + ")"
	}
	return s
}

// Is matches ErrRefused and ErrUnavailable.
func (e *RefusedError) Is(t error) bool { return t == ErrRefused || t == ErrUnavailable }

// Unwrap returns Err.
func (e *RefusedError) Unwrap() error { return e.Err }

// about composes the text of an error of an operation: what it was, how it went, and why.
func about(op, name, outcome string, why error) string {
	s := outcome
	switch {
	case op != "" && name != "":
		s = fmt.Sprintf("%s %q: %s", op, name, s)
	case op != "":
		s = op + ": " + s
	}
	if why != nil {
		s += ": " + why.Error()
	}
	return s
}

// Refusal returns the refusal in err, or nil if err is none. A refusal joined with an error of unknown outcome is none.
// Of several copies of a request one was refused, and another may be carried out.
func Refusal(err error) *RefusedError {
	var refused *RefusedError
	if !errors.As(err, &refused) || isUnknown(err) {
		return nil
	}
	return refused
}

// IsNotSent reports whether err says for certain that the engine could not be asked, so that nothing has happened; see
// UnavailableError.
func IsNotSent(err error) bool {
	var unavailable *UnavailableError
	return errors.As(err, &unavailable) && unavailable.NotSent && Refusal(err) == nil && !isUnknown(err)
}

// isUnknown reports whether err, or a part of it, matches ErrUnavailable and says no more about the outcome. What a
// refusal, or an error with NotSent, wraps does not count.
func isUnknown(err error) bool {
	if err == ErrUnavailable { //nolint:errorlint // the parts of err are looked at one by one
		return true
	}
	switch e := err.(type) { //nolint:errorlint // see above
	case *RefusedError:
		return false
	case *UnavailableError:
		return !e.NotSent
	case interface{ Is(target error) bool }:
		if e.Is(ErrUnavailable) {
			return true
		}
	}
	switch e := err.(type) { //nolint:errorlint // see above
	case interface{ Unwrap() error }:
		return isUnknown(e.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(e.Unwrap(), isUnknown)
	}
	return false
}
