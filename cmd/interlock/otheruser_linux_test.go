package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/servers"
)

// otherUser is a program that becomes root, as sudo does, and works on until its file is there.
const otherUser = "becomes-other-user"

func becomeOther() {
	if err := syscall.Setreuid(0, 0); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(9)
	}
	_ = os.WriteFile("up", []byte(fmt.Sprint(os.Getpid())), 0o600) // nobody waits for it if it is not there
	for {
		if _, err := os.Stat("stop"); err == nil {
			os.Exit(0)
		}
		<-time.After(5 * time.Millisecond)
	}
}

// restricted is a folder in which interlock runs as nobody, and a program that becomes root.
type restricted struct {
	t              *testing.T
	dir, url, root string
	stderr         *os.File
}

func newRestricted(t *testing.T) *restricted {
	t.Helper()
	if os.Geteuid() != 0 {
		t.Skip("only root can make a program of another user")
	}
	if status, _ := os.ReadFile("/proc/self/status"); strings.Contains(string(status), "NoNewPrivs:\t1") {
		t.Skip("no program changes its user here")
	}
	dir, err := os.MkdirTemp("", "interlock-other-user-") // the folders of a test are for its own user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	url := "redis://" + servers.Redis(t) + "?check=none"
	r := &restricted{t: t, dir: dir, root: filepath.Join(dir, otherUser), url: url}
	self, err := os.ReadFile("/proc/self/exe")
	for name, mode := range map[string]os.FileMode{"interlock": 0o755, otherUser: 0o755 | os.ModeSetuid} {
		if err == nil {
			err = os.WriteFile(filepath.Join(dir, name), self, 0o755)
		}
		if err == nil {
			err = os.Chmod(filepath.Join(dir, name), mode)
		}
	}
	if err == nil {
		err = os.Chmod(dir, 0o777)
	}
	if err != nil {
		t.Fatal(err)
	}
	return r
}

// start runs a command under the lock "nightly", and returns when the other user's program works.
func (r *restricted) start(command ...string) *exec.Cmd {
	r.t.Helper()
	cmd := exec.CommandContext(r.t.Context(), filepath.Join(r.dir, "interlock"),
		append([]string{"run", "nightly", "--url", r.url, "--kill-grace", "1s", "--"}, command...)...)
	cmd.Dir, cmd.Env = r.dir, append(os.Environ(), "HOME="+r.dir, "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	var err error
	if r.stderr, err = os.Create(filepath.Join(r.dir, "stderr")); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = r.stderr.Close() })
	cmd.Stderr = r.stderr
	if err := cmd.Start(); err != nil {
		r.t.Fatal(err)
	}
	r.t.Cleanup(func() { _ = os.WriteFile(filepath.Join(r.dir, "stop"), nil, 0o600); _ = cmd.Wait() })
	r.await("the other user's program", func() bool {
		_, err := os.Stat(filepath.Join(r.dir, "up"))
		return err == nil
	})
	return cmd
}

func (r *restricted) said() string {
	text, _ := os.ReadFile(filepath.Join(r.dir, "stderr"))
	return string(text)
}

func (r *restricted) await(what string, done func() bool) {
	r.t.Helper()
	for end := time.Now().Add(patience); !done(); <-time.After(5 * time.Millisecond) {
		if time.Now().After(end) {
			r.t.Fatalf("waited in vain for %s; stderr: %s", what, r.said())
		}
	}
}

// wants checks how a command ended and what it said.
func (r *restricted) wants(cmd *exec.Cmd, code int, said ...string) {
	r.t.Helper()
	_ = cmd.Wait() // the code tells
	if got := cmd.ProcessState.ExitCode(); got != code {
		r.t.Errorf("exit code %d, want %d", got, code)
	}
	for _, want := range said {
		if !strings.Contains(r.said(), want) {
			r.t.Errorf("without %q:\n%s", want, r.said())
		}
	}
	if strings.Contains(r.said(), "was ended") {
		r.t.Errorf("it says that it ended what it could not:\n%s", r.said())
	}
}

func TestRun_LostLockOfACommandThatMayNotBeSignalled_IsTold(t *testing.T) {
	t.Parallel()
	r := newRestricted(t)
	cmd := r.start(r.root)
	command(t, nil, "break", "nightly", "--yes", "--url", r.url).want(t, exitOK, "", "")
	r.await("the refused signal", func() bool {
		return strings.Contains(r.said(), "SIGKILL does not reach the command")
	})
	if err := os.WriteFile(filepath.Join(r.dir, "stop"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	r.wants(cmd, exitFailed, "changes its user, so interlock may not be allowed to end it",
		"the command could not be killed and worked on until its own end, without the lock: ")
}

func TestRun_WhatACommandLeavesBehind_AndMayNotBeSignalled_IsTold(t *testing.T) {
	t.Parallel()
	r := newRestricted(t)
	cmd := r.start("sh", "-c", r.root+" & until [ -e up ]; do sleep 0.02; done; exit 3")
	r.wants(cmd, exitFailed, "what the command left behind could not be killed and works on (processes [",
		"the command itself ended with exit code 3")
}
