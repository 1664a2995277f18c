//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// helperVar makes the test binary a helper process, which obeys its standard input; see serve.
const helperVar = "INTERLOCK_FILELOCK_HELPER"

// lingerVar makes the locks that a helper process releases linger for as long as it lives, while others wait.
const lingerVar = "INTERLOCK_FILELOCK_LINGER"

// endless is a pace in which no turn and no lingering ends by itself, however slow the machine is.
var endless = pace{turn: 24 * time.Hour, comeback: 24 * time.Hour}

// TestMain of this binary belongs to the conformance test, so the helper begins here.
func init() {
	if mode := os.Getenv(helperVar); mode != "" {
		os.Exit(helper(mode))
	}
}

func helper(mode string) int {
	switch mode {
	case "serve":
		return serve(os.Args[1])
	case "linger": // keep the inherited descriptors until standard input ends
		_, _ = io.Copy(io.Discard, os.Stdin)
		return 0
	case "loop":
		return loop(os.Args[1:])
	}
	return 2
}

// serve opens a driver and answers each line of standard input with one line: "try ID NAME" and "lock ID NAME" with
// "token N" or "error ...", "release ID NAME" and "spawn NAME" with "ok" or "error ...". "enter ID MODE LIMIT
// WEIGHT NAME" is "lock" of a semaphore, or with limit 0 of a read/write lock.
func serve(dir string) int {
	d, err := New(dir, nil)
	if err != nil {
		fmt.Println("error", err)
		return 1
	}
	if os.Getenv(lingerVar) != "" {
		d.pace = endless
	}
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		fmt.Println(answer(d, strings.Fields(lines.Text())))
	}
	return 0
}

func answer(d *Driver, words []string) string {
	ctx := context.Background()
	verb, last := words[0], words[len(words)-1]
	switch verb {
	case "try", "lock":
		r := request(words[1], last)
		r.Try = verb == "try"
		g, err := d.Acquire(ctx, r)
		if err != nil {
			return "error " + err.Error()
		}
		return fmt.Sprint("token ", g.Token)
	case "enter":
		mode, limit, weight := driver.Mode(number(words[2])), number(words[3]), number(words[4])
		g, err := d.Acquire(ctx, inside(words[1], mode, limit, weight, last))
		if err != nil {
			return "error " + err.Error()
		}
		return fmt.Sprint("token ", g.Token)
	case "release":
		if err := d.Release(ctx, &driver.Release{Key: mutex(last), ID: words[1]}); err != nil {
			return "error " + err.Error()
		}
		return "ok"
	case "spawn": // a child that has the lock's descriptor, and file 3 of this process as its standard input
		f, err := d.File(mutex(last))
		if err != nil {
			return "error " + err.Error()
		}
		defer f.Close()
		c := exec.Command(os.Args[0])
		c.Env = append(os.Environ(), helperVar+"=linger")
		c.Stdin = os.NewFile(3, "linger")
		c.ExtraFiles = []*os.File{f}
		if err := c.Start(); err != nil {
			return "error " + err.Error()
		}
		return "ok"
	}
	return "error unknown command"
}

// process is a helper process.
type process struct {
	t    *testing.T
	cmd  *exec.Cmd
	in   io.WriteCloser
	out  *bufio.Reader
	done bool
}

// startProcess starts a helper that serves dir. Extra files begin with descriptor 3.
func startProcess(t *testing.T, dir string, extra ...*os.File) *process {
	t.Helper()
	p := &process{t: t, cmd: exec.Command(os.Args[0], dir)}
	p.cmd.Env = append(os.Environ(), helperVar+"=serve")
	p.cmd.Stderr = os.Stderr
	p.cmd.ExtraFiles = extra
	var err error
	if p.in, err = p.cmd.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := p.cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	p.out = bufio.NewReader(out)
	if err := p.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.kill)
	return p
}

// ask sends a command and returns the answer.
func (p *process) ask(format string, args ...any) string {
	p.t.Helper()
	p.send(format, args...)
	return p.answer()
}

func (p *process) send(format string, args ...any) {
	p.t.Helper()
	if _, err := fmt.Fprintf(p.in, format+"\n", args...); err != nil {
		p.t.Fatal(err)
	}
}

func (p *process) answer() string {
	p.t.Helper()
	line, err := p.out.ReadString('\n')
	if err != nil {
		p.t.Fatalf("the helper process ended: %v", err)
	}
	return strings.TrimSpace(line)
}

// token sends a command that must be granted.
func (p *process) token(format string, args ...any) uint64 {
	p.t.Helper()
	line := p.ask(format, args...)
	var token uint64
	if _, err := fmt.Sscanf(line, "token %d", &token); err != nil {
		p.t.Fatalf("%s: %s", fmt.Sprintf(format, args...), line)
	}
	return token
}

// kill ends the helper with SIGKILL and waits until it is gone.
func (p *process) kill() {
	if p.done {
		return
	}
	p.done = true
	_ = p.cmd.Process.Kill()
	_ = p.cmd.Wait()
}

// open returns a driver for dir that is closed at the end.
func open(t testing.TB, dir string) *Driver {
	t.Helper()
	d, err := New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return d
}

func mutex(name string) driver.Key { return driver.Key{Kind: driver.KindMutex, Name: name} }

// request asks for the mutex name with the given ID.
func request(id, name string) *driver.Request {
	return &driver.Request{
		Key: mutex(name), ID: id, Tokens: 1, Weight: 1,
		Owner: "owner of " + id, Client: "client of " + id, Label: "label of " + id,
	}
}

// inside asks for permits of the semaphore name, or with limit 0 for the read/write lock.
func inside(id string, mode driver.Mode, limit, weight int, name string) *driver.Request {
	r := request(id, name)
	r.Kind, r.Mode, r.Limit, r.Weight = driver.KindSemaphore, mode, limit, weight
	if limit == 0 {
		r.Kind = driver.KindRWMutex
	}
	return r
}

func number(s string) int {
	n, err := strconv.Atoi(s)
	if err != nil {
		panic(err)
	}
	return n
}

var lastID atomic.Int64

// newID returns an ID that no other request has.
func newID() string { return fmt.Sprintf("%d-%d", os.Getpid(), lastID.Add(1)) }

func try(d *Driver, id, name string) (driver.Grant, error) {
	r := request(id, name)
	r.Try = true
	return d.Acquire(context.Background(), r)
}

// mustTry takes a lock that must be free, without waiting.
func mustTry(t testing.TB, d *Driver, id, name string) driver.Grant {
	t.Helper()
	g, err := try(d, id, name)
	if err != nil {
		t.Fatalf("try %q: %v", name, err)
	}
	return g
}

func release(t testing.TB, d *Driver, id, name string) {
	t.Helper()
	if err := d.Release(context.Background(), &driver.Release{Key: mutex(name), ID: id}); err != nil {
		t.Fatalf("release %q: %v", name, err)
	}
}

// skip skips a test that this machine cannot run. With INTERLOCK_REQUIRE=all it fails instead.
func skip(t *testing.T, why string) {
	t.Helper()
	if os.Getenv("INTERLOCK_REQUIRE") == "all" {
		t.Fatalf("INTERLOCK_REQUIRE=all, but: %s", why)
	}
	t.Skip(why)
}

// outcome is what an Acquire returned.
type outcome struct {
	grant driver.Grant
	err   error
}

// waitingAcquire is an Acquire in a goroutine of its own.
type waitingAcquire struct {
	cancel context.CancelFunc
	result chan outcome
}

// startWaiting starts an Acquire of a lock that is taken, and returns when it has been told so.
func startWaiting(t *testing.T, d *Driver, id, name string) *waitingAcquire {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	t.Cleanup(cancel)
	w := &waitingAcquire{cancel: cancel, result: make(chan outcome, 1)}
	told := make(chan struct{}, 16)
	r := request(id, name)
	r.Waiting = func(*driver.HeldError) { told <- struct{}{} }
	go func() {
		g, err := d.Acquire(ctx, r)
		w.result <- outcome{g, err}
	}()
	select {
	case <-told:
	case o := <-w.result:
		t.Fatalf("Acquire did not wait: %+v", o)
	case <-time.After(10 * time.Second):
		t.Fatal("Acquire neither waited nor returned")
	}
	return w
}

// end returns what the Acquire returned. It fails the test if that takes longer than 10 s.
func (w *waitingAcquire) end(t *testing.T) outcome {
	t.Helper()
	select {
	case o := <-w.result:
		return o
	case <-time.After(10 * time.Second):
		t.Fatal("Acquire did not return")
		return outcome{}
	}
}

func withTimeout(t *testing.T, d time.Duration) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

// eventually polls until ok is true, for states that no event tells a test of, such as that a thread sleeps in the
// kernel.
func eventually(t *testing.T, what string, ok func() bool) {
	t.Helper()
	for end := time.Now().Add(10 * time.Second); !ok(); {
		if time.Now().After(end) {
			t.Fatalf("never: %s", what)
		}
		syscall.Select(0, nil, nil, nil, &syscall.Timeval{Usec: 200})
	}
}
