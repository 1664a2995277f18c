package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/rogpeppe/go-internal/testscript"
	"golang.org/x/sys/unix"
)

func TestMain(m *testing.M) {
	testscript.Main(tests{m}, map[string]func(){"interlock": main})
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

// build returns the folder of the command as its users have it. A script starts it up to a hundred times, and the test
// itself, which is the command under the race detector, takes three times as long to start: that is left to the long
// run. Then, and in short runs, there is no folder.
var build = sync.OnceValues(func() (string, error) {
	if longrun.On() || testing.Short() {
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
	testscript.Run(t, scripts("testdata/script", func(env *testscript.Env) error {
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

// scripts returns how to run the scripts of a folder, each after setup.
func scripts(dir string, setup func(env *testscript.Env) error) testscript.Params {
	ownSignals()
	return testscript.Params{
		Dir: dir,
		Setup: func(env *testscript.Env) error {
			env.Setenv("HOME", env.WorkDir)
			// A binary with the race detector sleeps for a second before it exits, unless told otherwise.
			env.Setenv("GORACE", "atexit_sleep_ms=0")
			dir, err := build()
			if err != nil {
				return err
			}
			if dir != "" {
				env.Setenv("PATH", dir+string(filepath.ListSeparator)+env.Getenv("PATH"))
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

// patience is how long a script waits for something that should come at once.
const patience = 20 * time.Second

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

// waitUntil polls: what scripts wait for is done by processes that cannot wake us. A look may start a process, which
// costs more than what it looks at; so the pauses grow, and a long wait leaves the processors to what it waits for.
func waitUntil(ts *testscript.TestScript, what string, done func() bool) {
	const shortest, longest = 5 * time.Millisecond, 160 * time.Millisecond
	end, pause := time.Now().Add(patience), shortest
	for ; !done(); pause = min(2*pause, longest) {
		<-time.After(pause)
		if time.Now().After(end) {
			ts.Fatalf("waited in vain for %s", what)
		}
	}
}

func waitFile(ts *testscript.TestScript, neg bool, args []string) {
	for _, name := range args {
		waitUntil(ts, name, func() bool {
			_, err := os.Stat(ts.MkAbs(name))
			return err == nil
		})
	}
}

func waitGrep(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) != 2 {
		ts.Fatalf("usage: waitgrep TEXT FILE")
	}
	waitUntil(ts, args[0]+" in "+args[1], func() bool {
		content, err := os.ReadFile(ts.MkAbs(args[1]))
		return err == nil && bytes.Contains(content, []byte(args[0]))
	})
}

func waitOut(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: waitout TEXT CMD [ARG...]")
	}
	var last []byte
	defer func() { ts.Logf("[last stdout]\n%s", last) }()
	waitUntil(ts, args[0]+" from "+strings.Join(args[1:], " "), func() bool {
		last, _ = commandOf(ts, args[1:]).Output() // get ends with 1 while the lock is free
		return bytes.Contains(last, []byte(args[0]))
	})
}

// exists reports whether the process whose id is in a file is there and not a zombie.
func exists(ts *testscript.TestScript, file string) bool {
	pid := strings.TrimSpace(ts.ReadFile(file))
	number, err := strconv.Atoi(pid)
	ts.Check(err)
	if errors.Is(syscall.Kill(number, 0), syscall.ESRCH) {
		return false
	}
	stat, err := os.ReadFile("/proc/" + pid + "/stat")
	return err != nil || !bytes.Contains(stat, []byte(") Z "))
}

func waitGone(ts *testscript.TestScript, neg bool, args []string) {
	waitUntil(ts, "the end of "+args[0], func() bool { return !exists(ts, args[0]) })
}

func isRunning(ts *testscript.TestScript, neg bool, args []string) {
	if exists(ts, args[0]) == neg {
		ts.Fatalf("running %s: %v", args[0], neg)
	}
}
