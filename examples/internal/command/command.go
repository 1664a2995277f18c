// Package command is what the mains of the examples have in common: signals, flags and exit codes.
package command

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"syscall"
)

// Exit codes: those of sysexits where there is one.
const (
	Failed      = 1 // something that must hold does not
	Usage       = 64
	Missing     = 69 // a server is not installed
	Interrupted = 130
)

// Run is a program, which returns its exit code.
type Run func(ctx context.Context, args []string, stdout, stderr io.Writer) int

// Main runs the program and exits. Its context ends with SIGINT and SIGTERM.
func Main(run Run) {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr)
	if ctx.Err() != nil {
		code = Interrupted // as shells have it
	}
	stop()
	os.Exit(code)
}

// Flags returns a set of flags that says what is wrong with them instead of exiting.
func Flags(name string, stderr io.Writer) *flag.FlagSet {
	flags := flag.NewFlagSet(name, flag.ContinueOnError)
	flags.SetOutput(stderr)
	return flags
}

// Parse reads the flags. It reports false, and with which code to exit, if the program is not to go on.
func Parse(flags *flag.FlagSet, args []string) (code int, ok bool) {
	switch err := flags.Parse(args); {
	case errors.Is(err, flag.ErrHelp):
		return 0, false
	case err != nil:
		return Usage, false
	case flags.NArg() > 0:
		fmt.Fprintf(flags.Output(), "%s: %q is not known; -h lists what can be changed\n", flags.Name(), flags.Arg(0))
		return Usage, false
	}
	return 0, true
}
