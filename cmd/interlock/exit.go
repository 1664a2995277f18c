// How the command ends: the exit codes, and which error has which. app.go's finish comes here with the error of a
// command; report.go prints it.

package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// The exit codes of the command; see the package documentation. Those below 64 belong to the job; 64, 69 and 75 are
// those of sysexits.h, and 126 to 128 a shell's.
const (
	exitOK            = 0
	exitNone          = 1 // there is no such lock, or a break was answered no
	exitUsage         = 64
	exitUnavailable   = 69
	exitHeld          = 75
	exitLost          = 79
	exitFailed        = 125
	exitNotExecutable = 126
	exitNotFound      = 127
	exitSignal        = 128 // and the number of the signal
)

// exitError ends the command with a code of its own. Without err nothing is printed.
type exitError struct {
	code int
	err  error
}

// Error says what went wrong, or gives the code alone.
func (e *exitError) Error() string {
	if e.err == nil {
		return fmt.Sprintf("exit code %d", e.code)
	}
	return e.err.Error()
}

// Unwrap returns the cause, or nil.
func (e *exitError) Unwrap() error { return e.err }

// silently ends the command with code and no message: what there is to say has been printed.
func silently(code int) error {
	if code == exitOK {
		return nil
	}
	return &exitError{code: code}
}

// exitWith gives err an exit code.
func exitWith(code int, err error) error { return &exitError{code: code, err: err} }

// usageError is a wrong use of the command: the only kind of error that is followed by usage text.
type usageError struct{ message string }

// Error says what is wrong.
func (e *usageError) Error() string { return e.message }

// usage makes a usageError.
func usage(form string, args ...any) error { return &usageError{fmt.Sprintf(form, args...)} }

// signalError is the error of something that a signal has ended.
type signalError struct{ signal syscall.Signal }

// Error names the signal.
func (e *signalError) Error() string { return fmt.Sprintf("stopped by %s", signalName(e.signal)) }

// outcome is how an error leaves the command: its exit code, the word that programs read, and whether trying again
// later may help.
type outcome struct {
	exit      int
	word      string
	retryable bool
}

// judge maps an error to its outcome. The order is that of certainty: a HeldError that also matches the context's error
// is held, not unavailable.
func judge(err error) outcome {
	var o outcome
	var wrong *usageError
	var signal *signalError
	switch {
	case errors.As(err, &wrong):
		o = outcome{exitUsage, "usage", false}
	case errors.As(err, &signal):
		o = outcome{exitSignal + int(signal.signal), "interrupted", true}
	case errors.Is(err, interlock.ErrHeld):
		o = outcome{exitHeld, "held", true}
	case errors.Is(err, interlock.ErrLost):
		o = outcome{exitLost, "lost", false}
	case errors.Is(err, interlock.ErrUnsupported):
		o = outcome{exitUsage, "unsupported", false}
	case errors.Is(err, interlock.ErrConflict):
		o = outcome{exitUsage, "conflict", false}
	case errors.Is(err, interlock.ErrNotHeld):
		o = outcome{exitNone, "not_held", false}
	case driver.Refusal(err) != nil:
		o = outcome{exitUnavailable, "refused", false}
	case errors.Is(err, interlock.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		o = outcome{exitUnavailable, "unavailable", true}
	default:
		o = outcome{exitFailed, "failed", false}
	}
	// An exitError in the chain overrules the code, not the word, unless the code alone says what happened.
	var fixed *exitError
	if errors.As(err, &fixed) {
		o.exit = fixed.code
		switch fixed.code {
		case exitNotExecutable:
			o.word = "not_executable"
		case exitNotFound:
			o.word = "not_found"
		}
	}
	return o
}
