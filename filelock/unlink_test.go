//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// replacements are the ways in which a lock file can disappear from its path.
var replacements = map[string]func(path string) error{
	"removed": os.Remove,
	"renamed": func(path string) error { return os.Rename(path, path+".old") },
	"replaced": func(path string) error {
		if err := os.WriteFile(path+".new", nil, 0o600); err != nil {
			return err
		}
		return os.Rename(path+".new", path)
	},
	"with its folder": func(path string) error {
		return os.Rename(filepath.Dir(path), filepath.Dir(path)+".old")
	},
}

func TestAcquire_WaitingForAFileThatDisappears_GetsTheOneAtThePath(t *testing.T) {
	for name, replace := range replacements {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "locks")
			d, other := open(t, dir), open(t, dir)
			holder := newID()
			first := mustTry(t, d, holder, "x")
			w := startWaiting(t, other, newID(), "x")
			if err := replace(d.path(mutex("x"))); err != nil {
				t.Fatal(err)
			}
			release(t, d, holder, "x") // the waiter gets a lock that nobody else sees any more
			o := w.end(t)
			if o.err != nil || o.grant.Token <= first.Token {
				t.Fatalf("got %+v after %+v", o, first)
			}
			if _, err := try(d, newID(), "x"); !errors.Is(err, driver.ErrHeld) {
				t.Errorf("the waiter's lock is not the one at the path: %v", err)
			}
		})
	}
}

func TestTry_AfterTheFileOfAnIdleDescriptorDisappeared_LocksTheOneAtThePath(t *testing.T) {
	for name, replace := range replacements {
		t.Run(name, func(t *testing.T) {
			dir := filepath.Join(t.TempDir(), "locks")
			d, other := open(t, dir), open(t, dir)
			id := newID()
			mustTry(t, d, id, "x")
			release(t, d, id, "x")
			if err := replace(d.path(mutex("x"))); err != nil {
				t.Fatal(err)
			}
			mustTry(t, d, newID(), "x")
			if _, err := try(other, newID(), "x"); !errors.Is(err, driver.ErrHeld) {
				t.Errorf("another driver is not excluded: %v", err)
			}
		})
	}
}

func TestRelease_OfAHoldWhoseFileDisappeared_LeavesTheSuccessorAlone(t *testing.T) {
	dir := t.TempDir()
	d, other := open(t, dir), open(t, dir)
	holder := newID()
	mustTry(t, d, holder, "x")
	if err := os.Remove(d.path(mutex("x"))); err != nil {
		t.Fatal(err)
	}
	mustTry(t, other, newID(), "x") // what the package doc warns of
	release(t, d, holder, "x")
	if _, err := try(d, newID(), "x"); !errors.Is(err, driver.ErrHeld) {
		t.Errorf("the successor lost its lock: %v", err)
	}
}

func TestCleanUp_UnderTheLock_IsSafeWhileOthersLock(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	path := d.path(mutex("x"))
	stop, removed := make(chan struct{}), make(chan int)
	go func() { // as: flock -n FILE rm FILE
		n := 0
		for {
			select {
			case <-stop:
				removed <- n
				return
			default:
			}
			f, err := openLockFile(path, dir)
			if err != nil {
				continue
			}
			if f.tryLock() == nil {
				if same, _ := f.atPath(); same && os.Remove(path) == nil {
					n++
				}
			}
			f.close()
		}
	}()
	inside := make(chan struct{}, 1)
	done := make(chan error, 4)
	for range cap(done) {
		go func() {
			for range 100 {
				id := newID()
				if _, err := d.Acquire(context.Background(), request(id, "x")); err != nil {
					done <- err
					return
				}
				select {
				case inside <- struct{}{}:
					spin(10 * time.Microsecond)
					<-inside
				default:
					done <- errors.New("two are inside")
					return
				}
				if err := d.Release(context.Background(), &driver.Release{Key: mutex("x"), ID: id}); err != nil {
					done <- err
					return
				}
			}
			done <- nil
		}()
	}
	for range cap(done) {
		if err := <-done; err != nil {
			t.Error(err)
		}
	}
	close(stop)
	t.Logf("removed %d times", <-removed)
}
