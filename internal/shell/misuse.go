package shell

import (
	"context"
	"errors"
	"fmt"
	"unicode/utf8"

	"github.com/interlock-go/interlock/internal/core"
)

var (
	ErrNilContext = errors.New("interlock: nil Context")
	ErrNoClient   = errors.New("interlock: Client was not made by Open or New")
	errNoMutex    = errors.New("interlock: Mutex was not made by Client.Mutex")
)

// checkContext returns an error for a nil context.
func CheckContext(ctx context.Context) error {
	if ctx == nil {
		return ErrNilContext
	}
	return nil
}

// panicOn panics with err, for methods that have no error to return.
func PanicOn(err error) {
	if err != nil {
		panic(err.Error())
	}
}

// checkMade says why c cannot be used, or returns nil. The other types have a method of the same name.
func (c *Client) CheckMade() error {
	if c == nil || c.Driver == nil {
		return ErrNoClient
	}
	return nil
}

// checkLock also returns what was wrong with the name or the options.
func CheckLock(m *core.Lock) error {
	if m == nil || m.Terms == nil {
		return errNoMutex
	}
	if m.Terms.Err != nil {
		return m.Terms.Err
	}
	return ClientOfLock(m).CheckMade()
}

// checkCall returns made, the error of the receiver, or else the error of a nil context.
func CheckCall(made error, ctx context.Context) error { //nolint:revive // what is wrong with the receiver is said first
	if made != nil {
		return made
	}
	return CheckContext(ctx)
}

// maxNameBytes bounds the names of locks and owners; every engine can store as much.
const MaxNameBytes = 512

// validateName checks the name of a lock or of an owner; what says which. No engine is asked.
func ValidateName(what, name string) error {
	switch {
	case name == "":
		return fmt.Errorf("interlock: the %s is empty: it must have 1 to %d bytes", what, MaxNameBytes)
	case len(name) > MaxNameBytes:
		return fmt.Errorf("interlock: the %s has %d bytes: at most %d are allowed", what, len(name), MaxNameBytes)
	case !utf8.ValidString(name):
		return fmt.Errorf("interlock: the %s %q is not valid UTF-8", what, name)
	}
	return nil
}
