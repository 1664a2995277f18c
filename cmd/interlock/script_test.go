package main

import (
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/rogpeppe/go-internal/testscript"
)

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"interlock": main, keeperName: main, otherUser: becomeOther})
}

// tests are all tests, and what is left to do after them.
type tests struct{ *testing.M }

func (t tests) Run() int {
	drivertest.AtOnce(6) // they wait for processes and for leases, most of the time
	defer func() {
		if built != "" {
			_ = os.RemoveAll(built)
		}
	}()
	return t.M.Run()
}

// built is the folder of the program that build has built.
var built string

// build returns the folder of the command as its users have it. Scripts start it a thousand times, and the test itself,
// which is the command under the race detector, takes five times as much of a processor to start and to end. In short
// runs, which compile nothing, there is no folder.
var build = sync.OnceValues(func() (string, error) {
	if testing.Short() {
		return "", nil
	}
	var err error
	if built, err = os.MkdirTemp("", "interlock-command-"); err != nil {
		return "", err
	}
	cmd := exec.Command("go", "build", "-tags=full", "-buildvcs=false", "-ldflags=-w",
		"-o", filepath.Join(built, "interlock"), ".")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w\n%s", err, out)
	}
	return built, nil
})

// TestScripts runs testdata/script: executable copies of the table of behaviours in the package documentation and in
// the help of run. Beside testscript's own commands they use:
//
//	exits CODE CMD [ARG...]   runs CMD, which must end with CODE
//	start NAME CMD [ARG...]   starts CMD in the background; its output goes to NAME.out and NAME.err
//	signal SIGNAL NAME        sends a signal to a started process, and to it alone
//	finish NAME CODE          waits for a started process, which must end with CODE (128+n if a signal ended it)
//	waitfile FILE...          waits until the files are there
//	waitgrep PATTERN FILE     waits until a file contains the text
//	waitout TEXT CMD [ARG...] runs CMD again and again until its stdout contains the text
//	waitgone FILE             waits until no process has the id that the file holds
//	running FILE              fails unless a process has the id that the file holds
//	address NAME VARIABLE     puts host and port of a console that was started as NAME into a variable
//	ask NAME PATH STATUS TEXT [BODY [TOKEN]]
//	                          asks that console until the answer has the status and contains the text; posts BODY,
//	                          or what is in the file if it is @FILE, unless it is empty
func TestScripts(t *testing.T) {
	testscript.Run(t, scripts("testdata/script", longrun.On(), func(env *testscript.Env) error {
		locks := filepath.Join(env.WorkDir, "locks")
		env.Setenv("INTERLOCK_URL", "file://"+locks)
		env.Setenv("LOCKS", locks)
		return nil
	}))
}

// ownSignals makes what this process starts find HUP and INT as a shell's jobs do, also if whoever started the tests
// ignores them, as nohup does, and shells with INT for what they start in the background. What is caught here has its
// default effect there.
func ownSignals() {
	for _, sig := range []os.Signal{syscall.SIGHUP, syscall.SIGINT} {
		if signal.Ignored(sig) {
			signal.Notify(make(chan os.Signal, 1), sig)
		}
	}
}

// scripts returns how to run the scripts of a folder, each after setup: with the command that build has built, or with
// the test itself, so that the race detector sees what the command does.
func scripts(dir string, raced bool, setup func(env *testscript.Env) error) testscript.Params {
	ownSignals()
	return testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			// A binary with the race detector sleeps for a second before it exits, unless told otherwise.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			if !raced {
				dir, err := build()
				if err != nil {
					return err
				}
				if dir != "" {
					env.Setenv("PATH", dir+string(filepath.ListSeparator)+env.Getenv("PATH"))
				}
			}
			env.Values[processes{}] = &started{byName: map[string]*exec.Cmd{}}
			return setup(env)
		},
		Cmds: map[string]func(ts *testscript.TestScript, neg bool, args []string){
			"exits": exits, "start": start, "signal": sendSignal, "finish": finish, "waitfile": waitFile,
			"waitgrep": waitGrep,
			"waitout":  waitOut, "waitgone": waitGone, "running": isRunning, "address": address, "ask": ask,
		},
	}
}
