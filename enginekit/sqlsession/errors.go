// Errors of the core, and the classes that they become. An engine's Dialect.Judge sorts what its server says.

package sqlsession

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

var (
	// ErrLost says that a connection has ended. A job that gets it has not been begun.
	ErrLost = errors.New("the connection to the server was lost")

	// ErrUnasked says that the session had ended before the server got the question. So it can be asked over another
	// session.
	ErrUnasked = errors.New("the session had ended before")

	// ErrUnsure says that the session may have the lock although Session.Try fails, because the server has refused to
	// take it back.
	ErrUnsure = errors.New("the server has refused to take back what may have been given")

	errNoSession = errors.New("each connection of this client that could ask has a part in the lock already: " +
		"configure more shared connections or waits")
)

// Meaning is what an error of a server or a client library means to the caller.
type Meaning uint8

// What errors mean.
const (
	Unknown   Meaning = iota // the statement may have been run; errors that the engine does not know mean this
	Unreached                // there was no session to ask over, for the moment
	Refused                  // the server has said no, and would again
)

// Unavailable returns err as one of the classes of package driver, by what Dialect.Judge says of it: a RefusedError, or
// an UnavailableError, with NotSent if no session could be asked. op and name are the operation and the lock.
// driver.ErrClosed stays as it is. A refusal has Open set: an acquisition is several statements, and those before the
// refused one may have been run.
func (d *Core) Unavailable(op, name string, err error) error {
	if errors.Is(err, driver.ErrClosed) {
		return err
	}
	switch meaning, hint := d.dialect.Judge(err); meaning {
	case Refused:
		return &driver.RefusedError{Op: op, Name: name, Err: err, Hint: hint, Open: true}
	case Unreached:
		return &driver.UnavailableError{Op: op, Name: name, Err: d.dialect.Advise(err), NotSent: true}
	case Unknown:
	}
	return &driver.UnavailableError{Op: op, Name: name, Err: d.dialect.Advise(err)}
}

// gone is the error of a request that has been released or undone.
func gone(key driver.Key) error {
	return fmt.Errorf("%s %q: there is no such hold: %w", key.Kind, key.Name, driver.ErrLost)
}
