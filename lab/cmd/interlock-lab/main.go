// Command interlock-lab shows how locks of articles about distributed locks fail, and interlock in the same events. It
// is what "interlock lab" starts, and starts the servers that it needs itself.
//
//	interlock lab                             lists the experiments
//	interlock lab D3                          runs one, or several: D3 D10
//	interlock lab --all --report lab.html     runs all and writes a page that plays them
//	interlock lab search D2                   finds the shortest schedules by which an exhibit fails, and replays them
//	interlock lab serve                       serves a page on which you break locks yourself
//	interlock lab help                        explains all of this, in Chinese with --lang zh
//
// Flags: --lang en or zh (the default is the environment's, otherwise en), -o json, --wire (what interlock's clients
// sent in each act, with the answers; JSON and the page have it anyway), --report FILE, --all, --listen ADDRESS.
//
// Exit codes: 0 all flaws were shown as expected; 1 one was not; 64 usage; 69 a server is not installed (the message
// says what to install; the other experiments were run); 125 the lab itself failed; 130 it was interrupted.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/interlock-go/interlock/lab/internal/play"
)

// The exit codes, which are those of the command interlock where it has the same.
const (
	exitOK          = 0
	exitUnexpected  = 1
	exitUsage       = 64
	exitMissing     = 69
	exitFailed      = 125
	exitInterrupted = 130
)

func main() {
	play.ServeIfProcess()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	code := run(ctx, os.Args[1:], os.Stdout, os.Stderr, os.Getenv)
	if code == exitInterrupted {
		fmt.Fprintln(os.Stderr, "interlock lab: interrupted")
	}
	stop()
	os.Exit(code)
}
