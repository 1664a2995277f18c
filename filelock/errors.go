//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"errors"
	"fmt"
	"syscall"

	"github.com/interlock-go/interlock/driver"
)

// What is wrong, and what to do about it: errors of the system become refusals with a hint, in one function.

// errNotRegular is the error for something else than a file where a lock file belongs.
var errNotRegular = errors.New("it is not a regular file")

// errRestless is the error for a path that shows another file each time.
var errRestless = errors.New("it is another file each time it is looked at")

// What is wrong with an open file of the caller's; see Driver.AcquireOn.
var (
	// ErrHasLocks is what an error of [Driver.AcquireOn] matches if the open file has a lock.
	ErrHasLocks = errors.New("the descriptor has a lock already")

	errNotTheFile  = errors.New("the descriptor is not open on the lock's file, or that was replaced meanwhile")
	errNotBothWays = errors.New("the descriptor is not open for reading and writing")
)

// errLooks refuses locks of a driver that only looks.
var errLooks = fmt.Errorf("file: the driver was opened to look alone (ReadOnly): %w", driver.ErrUnsupported)

// errNoMarks says that there are no open file description locks. A mutex does without them, but for AcquireOn.
var errNoMarks = errors.New("the file system or a sandbox refuses open file description locks (F_OFD_SETLK)")

// pathError says what failed on which path. What people can mend is a refusal that says how: after it nothing is held,
// as after every error of this package. It unwraps to the system's error. All errors of the system come through here.
func pathError(what, path string, err error) error {
	said := fmt.Errorf("%s %s: %w", what, path, err)
	if advice := adviceFor(err); advice != "" {
		return &driver.RefusedError{Err: said, Hint: advice}
	}
	return said
}

// adviceFor returns what to do about err, or "" if that is not known.
func adviceFor(err error) string {
	switch {
	case errors.Is(err, errNotRegular):
		return "remove it, or name another folder"
	case errors.Is(err, errRestless), errors.Is(err, errNoMarks):
		return "name a folder on a local file system"
	case errors.Is(err, errTokensUsedUp):
		return "remove the file under its lock"
	case errors.Is(err, errNotTheFile), errors.Is(err, errNotBothWays):
		return "open the lock's file for reading and writing, as exec 9<>FILE does in a shell"
	case errors.Is(err, ErrHasLocks):
		return "close it first"
	}
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return ""
	}
	return adviceForErrno(errno)
}

// isOfOneFile reports whether an error is about the file that was opened and no other. A list then goes on with the
// next.
func isOfOneFile(err error) bool {
	var errno syscall.Errno
	if !errors.As(err, &errno) {
		return errors.Is(err, errNotRegular)
	}
	switch errno {
	case syscall.EACCES, syscall.EPERM, syscall.ELOOP, syscall.EISDIR, syscall.ENXIO, syscall.ENODEV, syscall.EIO:
		return true
	}
	return false
}
