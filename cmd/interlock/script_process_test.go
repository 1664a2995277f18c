// The commands of scripts that start processes, signal them and look at how they end; script_test.go lists them.

package main

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

// processes is the key of a script's started processes.
type processes struct{}

type started struct {
	mu     sync.Mutex // guards byName
	byName map[string]*exec.Cmd
}

func exits(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exits CODE CMD [ARG...]")
	}
	wantCode(ts, args[0], ts.Exec(args[1], args[2:]...))
}

// wantCode fails unless err is the result of a process that ended with the code.
func wantCode(ts *testscript.TestScript, want string, err error) {
	code := 0
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		status := exit.Sys().(syscall.WaitStatus)
		if code = status.ExitStatus(); status.Signaled() {
			code = 128 + int(status.Signal())
		}
	} else if err != nil {
		ts.Fatalf("%v", err)
	}
	if strconv.Itoa(code) != want {
		ts.Fatalf("exit code %d, want %s", code, want)
	}
}

func start(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: start NAME CMD [ARG...]")
	}
	cmd := commandOf(ts, args[1:])
	stdout, err := os.Create(ts.MkAbs(args[0] + ".out"))
	ts.Check(err)
	defer stdout.Close() // the process has its own
	stderr, err := os.Create(ts.MkAbs(args[0] + ".err"))
	ts.Check(err)
	defer stderr.Close()
	cmd.Stdout, cmd.Stderr = stdout, stderr
	ts.Check(cmd.Start())
	ts.Value(processes{}).(*started).put(args[0], cmd)
	ts.Defer(func() { _ = cmd.Process.Kill() })
}

// commandOf returns a process that does not run yet, with the script's folder and environment.
func commandOf(ts *testscript.TestScript, args []string) *exec.Cmd {
	path := args[0]
	if !strings.Contains(path, "/") {
		path = look(ts, path)
	}
	cmd := exec.Command(path, args[1:]...)
	cmd.Args[0] = args[0]
	cmd.Dir = ts.Getenv("WORK")
	for _, name := range []string{
		"PATH", "HOME", "WORK", "LOCKS", "INTERLOCK_URL", "INTERLOCK_HANDLE", "GORACE",
		"TESTSCRIPT_COMMAND",
	} {
		cmd.Env = append(cmd.Env, name+"="+ts.Getenv(name))
	}
	return cmd
}

// look finds a program on the script's PATH, where testscript has put interlock.
func look(ts *testscript.TestScript, name string) string {
	for _, dir := range filepath.SplitList(ts.Getenv("PATH")) {
		path := filepath.Join(dir, name)
		if info, err := os.Stat(path); err == nil && info.Mode()&0o111 != 0 {
			return path
		}
	}
	ts.Fatalf("%s is not on PATH", name)
	return ""
}

func (s *started) put(name string, cmd *exec.Cmd) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.byName[name] = cmd
}

func process(ts *testscript.TestScript, name string) *exec.Cmd {
	s := ts.Value(processes{}).(*started)
	s.mu.Lock()
	defer s.mu.Unlock()
	cmd := s.byName[name]
	if cmd == nil {
		ts.Fatalf("nothing was started as %s", name)
	}
	return cmd
}

func sendSignal(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: signal SIGNAL NAME")
	}
	number := unix.SignalNum("SIG" + args[0])
	if number == 0 {
		ts.Fatalf("there is no signal %s", args[0])
	}
	ts.Check(process(ts, args[1]).Process.Signal(number))
}

func finish(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: finish NAME CODE")
	}
	cmd := process(ts, args[0])
	ended := make(chan error, 1)
	go func() { ended <- cmd.Wait() }() // ends with the process, which Defer kills at the latest
	select {
	case err := <-ended:
		ts.Logf("[%s]\n%s", args[0]+".err", ts.ReadFile(args[0]+".err"))
		wantCode(ts, args[1], err)
	case <-time.After(patience):
		ts.Fatalf("%s did not end", args[0])
	}
}
