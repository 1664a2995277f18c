package sqllock

import (
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

var (
	// ErrLost says that a connection is no more.
	ErrLost = errors.New("the connection to the server was lost")

	// ErrUnasked says that the session had ended before the server got the question.
	ErrUnasked = errors.New("the session had ended before")

	// ErrUnsure says that the session may have what was asked for, because the server has refused to take it back.
	ErrUnsure = errors.New("the server has refused to take back what may have been given")

	// ErrSetUp is the refusal of a server that is not set up for locks.
	ErrSetUp = errors.New("the server is not set up for locks")

	errNoSession = errors.New("each connection of this client that could ask has a part in the lock already: " +
		"configure more shared connections or waits")
)

// Unavailable is the error of something whose outcome is unknown.
func (d *Core) Unavailable(op, name string, err error) error {
	if errors.Is(err, driver.ErrClosed) {
		return err
	}
	return &driver.UnavailableError{Op: op, Name: name, Err: d.dialect.Advise(err)}
}

// gone is the error of a request whose ID has been released or undone.
func gone(key driver.Key) error {
	return fmt.Errorf("%s %q: there is no such hold: %w", key.Kind, key.Name, driver.ErrLost)
}
