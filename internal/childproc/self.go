package childproc

import (
	"context"
	"os"
	"os/exec"
)

// These tell a process that it was started by Self: for which role, and with which argument.
const (
	roleEnv = "INTERLOCK_CHILD_ROLE"
	argEnv  = "INTERLOCK_CHILD_ARG"
)

// Self returns the command that starts this program once more for a role, which [Serve] plays there. The process is
// killed when ctx ends.
func Self(ctx context.Context, role, arg string) (*exec.Cmd, error) {
	program, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.CommandContext(ctx, program)
	cmd.Env = append(os.Environ(), roleEnv+"="+role, argEnv+"="+arg)
	return cmd, nil
}

// Serve reports whether this process was started by [Self] for a role, with which argument, and the end of the pipes to
// its parent, which talk in [JSON]. What the program prints from then on goes to standard error, so that
// nothing comes between the messages.
//
// Call it first in main and in TestMain. A process should end when Receive does.
func Serve(role string) (parent *Conn, arg string, serves bool) {
	if os.Getenv(roleEnv) != role {
		return nil, "", false
	}
	arg = os.Getenv(argEnv)
	_ = os.Unsetenv(roleEnv) // what this process starts has no role; neither name can be wrong
	_ = os.Unsetenv(argEnv)
	parent = JSON(os.Stdin, os.Stdout)
	os.Stdout = os.Stderr
	return parent, arg, true
}
