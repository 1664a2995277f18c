// The command of a job: where it is, and what to say if it cannot be started. stage.go looks before anybody takes a
// lock, so that a mistyped command disturbs nobody. Shells, env(1) and timeout(1) agree on 126 and 127, so scripts know
// them.

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os/exec"
	"strings"
	"syscall"
)

// lookCommand finds the file that the command names, as a shell would, with a shell's exit codes if it cannot.
//
// The file may vanish during the wait. Then the start fails, with the lock in hand, and giveBack releases it.
func lookCommand(name string) (string, error) {
	path, err := exec.LookPath(name)
	if err != nil && !errors.Is(err, exec.ErrDot) { // a PATH with a dot in it is the user's decision
		return "", commandError(name, err)
	}
	return path, nil
}

// commandError tells a command that is not there (127) from one that cannot be executed (126). Only a name that was
// looked for along PATH is "not found"; a path without a file may also be a script whose interpreter is missing, which
// the system reports in the same way.
//
// The text of the error names both causes, since the code cannot tell them apart.
func commandError(name string, err error) error {
	switch {
	case errors.Is(err, exec.ErrNotFound) && !strings.Contains(name, "/"):
		return exitWith(exitNotFound, fmt.Errorf("%s: command not found", name))
	case errors.Is(err, fs.ErrNotExist):
		return exitWith(exitNotFound, fmt.Errorf("%s: no such file, or the program that its #! line names is missing",
			name))
	// A shell would run the file as a script of its own. interlock does not guess: it would have to choose the shell.
	case errors.Is(err, syscall.ENOEXEC):
		return exitWith(exitNotExecutable, fmt.Errorf("%s: not a program; a script needs a #! line", name))
	}
	// The system has no room for another process, or this one for another file. The command may be quite right.
	for _, shortage := range []error{syscall.EMFILE, syscall.ENFILE, syscall.EAGAIN, syscall.ENOMEM} {
		if errors.Is(err, shortage) {
			return exitWith(exitFailed, fmt.Errorf("%s: cannot be started: %w", name, shortage))
		}
	}
	// Its text repeats the name.
	var wrapped *exec.Error
	if errors.As(err, &wrapped) {
		err = wrapped.Err
	}
	return exitWith(exitNotExecutable, fmt.Errorf("%s: cannot be executed: %w", name, err))
}
