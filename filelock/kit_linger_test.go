//go:build linux

package filelock

import (
	"context"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// looper is a driver that asks for the lock x again at once after each release, while another driver waits. Its
// lingering does not end by itself.
type looper struct {
	*testing.T
	d    *Driver
	wait *lockFile // who waits
	last driver.Grant
	id   string // of the present hold
}

func newLooper(t *testing.T, dir string) *looper {
	t.Helper()
	l := &looper{T: t, d: open(t, dir)}
	l.d.pace = endless
	l.take()
	l.wait = openFile(t, l.d, "x")
	l.wait.joinLine()
	l.release()
	return l
}

// take takes the lock, which is free or lingers.
func (l *looper) take() {
	l.Helper()
	l.id = newID()
	l.last = mustTry(l, l.d, l.id, "x")
}

// acquire takes the lock, and waits if it has to.
func (l *looper) acquire() {
	l.Helper()
	l.id = newID()
	if _, err := l.d.Acquire(withTimeout(l.T, 10*time.Second), request(l.id, "x")); err != nil {
		l.Fatal(err)
	}
}

func (l *looper) release() {
	l.Helper()
	release(l, l.d, l.id, "x")
}

// linger releases the lock so that it lingers.
func (l *looper) linger() {
	l.Helper()
	l.take()
	l.release()
	if l.free() {
		l.Fatal("the lock is free after the release, although its turn lasts")
	}
}

// free reports whether the waiter could have the lock.
func (l *looper) free() bool {
	l.Helper()
	err := l.wait.tryLock()
	if err != nil && err != syscall.EWOULDBLOCK {
		l.Fatal(err)
	}
	if err == nil {
		_ = flock(l.wait.fd, syscall.LOCK_UN)
	}
	return err == nil
}

func (l *looper) mustBeFree(when string) {
	l.Helper()
	if !l.free() {
		l.Errorf("the lock is not free %s", when)
	}
}

// keepLooping takes and releases the lock x until stop is called.
func keepLooping(t *testing.T, d *Driver) (stop func()) {
	var over atomic.Bool
	var all sync.WaitGroup
	all.Go(func() {
		for !over.Load() {
			id := newID()
			if _, err := d.Acquire(context.Background(), request(id, "x")); err != nil {
				t.Error(err)
				return
			}
			if err := d.Release(context.Background(), &driver.Release{Key: mutex("x"), ID: id}); err != nil {
				t.Error(err)
				return
			}
		}
	})
	return func() {
		over.Store(true)
		all.Wait()
	}
}
