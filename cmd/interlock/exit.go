// How the command ends: the exit codes, and which error has which. report.go comes here with the error of a command,
// and prints it. Scripts, cron and systemd see the code alone; people see the message, and programs the word of -o
// json.

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
//
// 79 is the first that sysexits.h leaves free, as its last is 78. It lies below 125, where the codes of timeout(1),
// env(1) and nohup(1) begin; those that systemd gives itself begin at 200.
const (
	exitOK = 0
	// As with grep, a shell can ask: if interlock get x; then ...
	exitNone = 1 // there is no such lock, or a break was answered no
	// EX_USAGE of sysexits.h.
	exitUsage = 64
	// EX_UNAVAILABLE: a service is unavailable.
	exitUnavailable = 69
	// EX_TEMPFAIL: try again later. flock says 1 here, which a job may say as well.
	exitHeld = 75
	// A unit with Restart=always starts the command again, and it waits anew; see packaging/systemd.
	exitLost = 79
	// 125 to 127 as timeout(1) has them: the tool itself, a command that cannot be executed, a command that is not
	// there.
	exitFailed        = 125
	exitNotExecutable = 126
	exitNotFound      = 127
	// As a shell reports a command that a signal has ended.
	exitSignal = 128 // and the number of the signal
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
//
// After any other error the usage text would suggest that the command line was wrong.
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
//
// The word is finer than the code: 64 and 69 have several, and -E and --lost-exit-code change the code alone.
// docs/rationale.md, Classes of errors, says which errors are worth a retry, and why.
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
	// A signal outweighs the holder that the wait has met.
	case errors.As(err, &signal):
		o = outcome{exitSignal + int(signal.signal), "interrupted", true}
	case errors.Is(err, interlock.ErrHeld):
		o = outcome{exitHeld, "held", true}
	case errors.Is(err, interlock.ErrLost):
		o = outcome{exitLost, "lost", false}
	// Wrong use, because no retry helps: another engine has to be named.
	case errors.Is(err, interlock.ErrUnsupported):
		o = outcome{exitUsage, "unsupported", false}
	case errors.Is(err, interlock.ErrConflict):
		o = outcome{exitUsage, "conflict", false}
	case errors.Is(err, interlock.ErrNotHeld):
		o = outcome{exitNone, "not_held", false}
	// A refusal also matches ErrUnavailable, so it comes before that: a password that is refused now is refused in a
	// minute, too, and no retry helps.
	case driver.Refusal(err) != nil:
		o = outcome{exitUnavailable, "refused", false}
	case errors.Is(err, interlock.ErrUnavailable), errors.Is(err, context.DeadlineExceeded):
		o = outcome{exitUnavailable, "unavailable", true}
	// 125 tells a failure of interlock from one of the job.
	default:
		o = outcome{exitFailed, "failed", false}
	}
	return o.overruled(err)
}

// overruled returns o with the code of an exitError in the chain of err, if there is one. The word stays, unless the
// code alone says what happened.
func (o outcome) overruled(err error) outcome {
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
