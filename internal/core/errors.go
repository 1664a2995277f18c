package core

import "github.com/interlock-go/interlock/driver"

// ErrAdopted is ErrAdopted of the package above.
var ErrAdopted error = adoptedError{}

type adoptedError struct{}

// Error says what has happened.
func (adoptedError) Error() string { return "another client has adopted it" }

// Is matches ErrReleased.
func (adoptedError) Is(t error) bool { return t == driver.ErrReleased }

// Unsupported returns the error for what the engine lacks, with its reason.
func Unsupported(t driver.Traits, reason string) error {
	return &unsupportedError{engine: t.Engine, reason: reason}
}

type unsupportedError struct{ engine, reason string }

// Error gives the engine and its reason.
func (e *unsupportedError) Error() string {
	return driver.ErrUnsupported.Error() + " (" + e.engine + ": " + e.reason + ")"
}

// Is matches driver.ErrUnsupported.
func (e *unsupportedError) Is(t error) bool { return t == driver.ErrUnsupported }
