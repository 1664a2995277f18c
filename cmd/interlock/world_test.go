package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/memlock"
)

// world is a store, the bad way to it that the command takes, and a good one.
type world struct {
	t       *testing.T
	name    string
	control *faulty.Control
	bad     driver.Driver // for the first command
	first   sync.Once
	store   *memlock.Driver
	other   *interlock.Client
	dir     string
}

// worlds are found by the scheme faulty://NAME.
var worlds sync.Map

func init() {
	driver.DefaultMux.Register("faulty", func(_ context.Context, u *driver.URL, _ driver.Config) (driver.Driver,
		error,
	) {
		w, ok := worlds.Load(u.Hosts[0])
		if !ok {
			return nil, errors.New("there is no such world")
		}
		return w.(*world).open(), nil
	})
}

// open gives the bad way to the first command, and good ones to those after it.
func (w *world) open() (d driver.Driver) {
	d = w.store.Peer()
	w.first.Do(func() { d = w.bad })
	return d
}

func newWorld(t *testing.T) *world {
	t.Helper()
	w := &world{t: t, name: strings.ToLower(strings.ReplaceAll(t.Name(), "/", "-")), dir: t.TempDir()}
	store := memlock.New(nil)
	w.store = store
	w.bad, w.control = faulty.Wrap(store.Peer(), 1)
	good := store.Peer()
	other, err := interlock.New(good, &interlock.Options{ClientName: "other:1"})
	if err != nil {
		t.Fatal(err)
	}
	w.other = other
	worlds.Store(w.name, w)
	t.Cleanup(func() {
		worlds.Delete(w.name)
		if err := errors.Join(other.Close(), good.Close(), store.Close()); err != nil {
			t.Error(err)
		}
	})
	return w
}

// running is a command that runs in this process.
type running struct {
	w              *world
	stdout, stderr *os.File
	code           chan int
}

// start runs interlock run with flags before the command, which is a shell script that finds the test's folder in $DIR.
func (w *world) start(script string, flags ...string) *running {
	w.t.Helper()
	r := &running{w: w, stdout: w.file("stdout"), stderr: w.file("stderr"), code: make(chan int, 1)}
	stdin, err := os.Open(os.DevNull)
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { stdin.Close() })
	args := append([]string{"run", "--url", "faulty://" + w.name, "nightly"}, flags...)
	args = append(args, "--", "/bin/sh", "-c", fmt.Sprintf("DIR='%s'; echo $$ > $DIR/pid.new; mv $DIR/pid.new "+
		"$DIR/pid\n%s", w.dir, script))
	// ends with the command
	go func() { r.code <- run(context.Background(), args, stdin, r.stdout, r.stderr, os.Getenv) }()
	return r
}

func (w *world) file(name string) *os.File {
	w.t.Helper()
	f, err := os.Create(filepath.Join(w.dir, name))
	if err != nil {
		w.t.Fatal(err)
	}
	w.t.Cleanup(func() { f.Close() })
	return f
}

// read waits until the job has written a file.
func (w *world) read(name string) string {
	w.t.Helper()
	var text string
	w.await("the job to write "+name, func() bool {
		content, err := os.ReadFile(filepath.Join(w.dir, name))
		text = strings.TrimSpace(string(content))
		return err == nil
	})
	return text
}

// await polls: what it waits for is done where nothing could wake us, as in a shell.
func (w *world) await(what string, done func() bool) {
	w.t.Helper()
	for end := time.Now().Add(patience); !done(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			w.t.Fatalf("waited in vain for %s; stderr: %s", what, w.peek("stderr"))
		}
	}
}

// peek returns what is in a file now.
func (w *world) peek(name string) string {
	content, _ := os.ReadFile(filepath.Join(w.dir, name))
	return string(content)
}

// group is the job's process group.
func (w *world) group() int {
	w.t.Helper()
	pid, err := strconv.Atoi(w.read("pid"))
	if err != nil {
		w.t.Fatal(err)
	}
	return pid
}

// wantExit waits for the command.
func (r *running) wantExit(want int) {
	r.w.t.Helper()
	select {
	case got := <-r.code:
		if got != want {
			r.w.t.Errorf("exit code %d, want %d; stderr:\n%s", got, want, r.w.peek("stderr"))
		}
	case <-time.After(30 * time.Second):
		r.w.t.Fatalf("the command did not end; stderr:\n%s", r.w.peek("stderr"))
	}
}

func (r *running) wantMessage(part string) {
	r.w.t.Helper()
	if got := r.w.peek("stderr"); !strings.Contains(got, part) {
		r.w.t.Errorf("stderr should contain %q; it is:\n%s", part, got)
	}
}

// livingIn returns the processes of a group that can still do something, zombies not counted.
func livingIn(t *testing.T, group int) []string {
	t.Helper()
	if errors.Is(syscall.Kill(-group, 0), syscall.ESRCH) {
		return nil
	}
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		return []string{"somebody (there is no /proc to tell who)"}
	}
	var living []string
	for _, path := range stats {
		content, err := os.ReadFile(path)
		if err != nil {
			continue // ended meanwhile
		}
		// The fields behind the command, which is in parentheses: state, parent, group.
		fields := strings.Fields(string(content[strings.LastIndexByte(string(content), ')')+1:]))
		if fields[2] == strconv.Itoa(group) && fields[0] != "Z" && fields[0] != "X" {
			living = append(living, string(content))
		}
	}
	return living
}
