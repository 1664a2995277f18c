//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"context"
	"errors"
	"os"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// shellFile opens the lock's file as a shell does by exec 9<>FILE.
func shellFile(t *testing.T, d *Driver, key driver.Key) *os.File {
	t.Helper()
	f, err := os.OpenFile(d.Path(key), os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = f.Close() })
	return f
}

// The driver that took the lock is gone, like a command that has ended. The open file keeps the lock, and so does a
// process that inherited it. Waiters get it when the last of them is gone, also by kill -9.
func TestAcquireOn_TheLockLivesAsLongAsTheOpenFile(t *testing.T) {
	dir := t.TempDir()
	others := open(t, dir)
	command, err := New(dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	shell := shellFile(t, others, mutex("x"))
	older, err := command.AcquireOn(t.Context(), request("1", "x"), shell)
	if err != nil {
		t.Fatal(err)
	}
	if err := command.Close(); err != nil {
		t.Error(err)
	}
	waiter := startWaiting(t, others, "2", "x")
	if _, err := try(others, "3", "x"); !errors.Is(err, driver.ErrHeld) {
		t.Errorf("the command has ended: got %v", err)
	}
	child := startProcess(t, dir, shell)
	if err := shell.Close(); err != nil {
		t.Error(err)
	}
	if got := child.ask("try 4 x"); got[:5] != "error" {
		t.Errorf("the child of the shell has the file: got %s", got)
	}
	select {
	case got := <-waiter.result:
		t.Errorf("the child of the shell has the file: got %+v", got)
	default:
	}
	child.kill()
	if got := waiter.end(t); got.err != nil || got.grant.Token <= older.Token {
		t.Errorf("after the end of all: got %+v, after token %d", got, older.Token)
	}
}

// A hold of a shell is listed like any other, with its name and its token.
func TestAcquireOn_IsListed(t *testing.T) {
	if !tellsHolders {
		t.Skip("holders are not listed here")
	}
	d := open(t, t.TempDir())
	g, err := d.AcquireOn(t.Context(), request("1", "x"), shellFile(t, d, mutex("x")))
	if err != nil {
		t.Fatal(err)
	}
	all := list(t, d, "")
	if len(all) != 1 || len(all[0].Holders) != 1 || all[0].Holders[0].Client != "client of 1" ||
		all[0].Holders[0].Token != g.Token {
		t.Errorf("got %+v", all)
	}
}

// A refusal leaves the lock free, whatever its reason is.
func TestAcquireOn_WhatCannotBe(t *testing.T) {
	closed := func(t *testing.T, d *Driver) *os.File {
		f := shellFile(t, d, mutex("x"))
		_ = f.Close()
		return f
	}
	opened := func(name string, flags int) func(t *testing.T, d *Driver) *os.File {
		return func(t *testing.T, d *Driver) *os.File {
			_ = shellFile(t, d, mutex(name))
			f, err := os.OpenFile(d.Path(mutex(name)), flags, 0)
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = f.Close() })
			return f
		}
	}
	for name, row := range map[string]struct {
		file func(t *testing.T, d *Driver) *os.File
		want error
	}{
		"a closed one":       {closed, nil},
		"another lock's":     {opened("y", os.O_RDWR), errNotTheFile},
		"open for writing":   {opened("x", os.O_WRONLY), errNotBothWays},
		"open for reading":   {opened("x", os.O_RDONLY), errNotBothWays},
		"no file":            {func(*testing.T, *Driver) *os.File { return os.Stderr }, nil},
		"the file was moved": {moved, errNotTheFile},
		"it is locked":       {locked, ErrHasLocks},
	} {
		t.Run(name, func(t *testing.T) {
			if errors.Is(row.want, ErrHasLocks) && !tellsHolders {
				t.Skip("it is not known here")
			}
			d := open(t, t.TempDir())
			_, err := d.AcquireOn(t.Context(), request("1", "x"), row.file(t, d))
			if err == nil || row.want != nil && !errors.Is(err, row.want) {
				t.Errorf("got %v", err)
			}
			if row.want != nil && driver.Refusal(err) == nil {
				t.Errorf("it does not say what to do: %v", err)
			}
			if !errors.Is(row.want, ErrHasLocks) {
				mustTry(t, d, "2", "x")
			}
		})
	}
	t.Run("a kind that there is not", func(t *testing.T) {
		d, r := open(t, t.TempDir()), request("1", "x")
		r.Kind = driver.KindLatch
		if _, err := d.AcquireOn(t.Context(), r, os.Stderr); !errors.Is(err, driver.ErrUnsupported) {
			t.Errorf("got %v", err)
		}
	})
	t.Run("the ID of a hold", func(t *testing.T) {
		d := open(t, t.TempDir())
		mustTry(t, d, "1", "x")
		if _, err := d.AcquireOn(t.Context(), request("1", "x"), shellFile(t, d, mutex("x"))); !errors.Is(
			err, driver.ErrConflict) {
			t.Errorf("got %v", err)
		}
	})
}

func moved(t *testing.T, d *Driver) *os.File {
	f := shellFile(t, d, mutex("x"))
	if err := os.Remove(f.Name()); err != nil {
		t.Fatal(err)
	}
	return f
}

func locked(t *testing.T, d *Driver) *os.File {
	f := shellFile(t, d, mutex("x"))
	if err := syscall.Flock(int(f.Fd()), syscall.LOCK_EX); err != nil {
		t.Fatal(err)
	}
	return f
}

// A wait that has ended by its context, by Undo or by Close leaves neither a lock nor a place in the line.
func TestAcquireOn_AWaitThatIsOver_LeavesNothing(t *testing.T) {
	for name, row := range map[string]struct {
		end  func(d *Driver, cancel context.CancelFunc)
		want error
	}{
		"cancelled": {func(_ *Driver, cancel context.CancelFunc) { cancel() }, context.Canceled},
		"closed":    {func(d *Driver, _ context.CancelFunc) { _ = d.Close() }, driver.ErrClosed},
		"undone": {func(d *Driver, _ context.CancelFunc) {
			_ = d.Release(context.Background(), &driver.Release{
				Key: mutex("x"), ID: "2", Undo: true, Horizon: time.Minute,
			})
		}, driver.ErrLost},
	} {
		t.Run(name, func(t *testing.T) {
			dir := t.TempDir()
			d, others := open(t, dir), open(t, dir)
			mustTry(t, others, "1", "x")
			shell := shellFile(t, d, mutex("x"))
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			told, got := make(chan struct{}, 16), make(chan error, 1)
			r := request("2", "x")
			r.Waiting = func(*driver.HeldError) { told <- struct{}{} }
			go func() {
				_, err := d.AcquireOn(ctx, r, shell)
				got <- err
			}()
			<-told
			row.end(d, cancel)
			if err := <-got; !errors.Is(err, row.want) {
				t.Errorf("got %v", err)
			}
			release(t, others, "1", "x")
			mustTry(t, others, "3", "x")
			if err := unlocked(int(shell.Fd())); err != nil {
				t.Errorf("the open file has a lock or a mark: %v", err)
			}
		})
	}
}

// The lock's file is replaced while somebody waits for it with a descriptor of the old one.
func TestAcquireOn_AFileThatIsReplacedMeanwhile_IsNoLock(t *testing.T) {
	dir := t.TempDir()
	d, holder := open(t, dir), open(t, dir)
	mustTry(t, holder, "1", "x")
	shell := shellFile(t, d, mutex("x"))
	told, got := make(chan struct{}, 16), make(chan error, 1)
	r := request("2", "x")
	r.Waiting = func(*driver.HeldError) { told <- struct{}{} }
	go func() {
		_, err := d.AcquireOn(t.Context(), r, shell)
		got <- err
	}()
	<-told
	if err := os.Remove(d.Path(mutex("x"))); err != nil {
		t.Fatal(err)
	}
	release(t, holder, "1", "x")
	if err := <-got; !errors.Is(err, errNotTheFile) {
		t.Errorf("got %v", err)
	}
	if err := unlocked(int(shell.Fd())); err != nil {
		t.Errorf("the old file has a lock: %v", err)
	}
	mustTry(t, d, "3", "x")
}
