package zklock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
)

// The faults go through the whole library, as a program's own.

// urlOf is the address of servers, with a root of its own.
func urlOf(root string, addrs ...string) string { return "zk://" + strings.Join(addrs, ",") + root }

// What the faults of several engines have in common.
var (
	openLocks  = locktest.Open
	mustLock   = locktest.MustLock
	mustUnlock = locktest.MustUnlock
)

// leased are options with a short lease.
func leased(lease time.Duration) *interlock.Options { return &interlock.Options{Lease: lease} }

// locking is a Lock under way.
type locking struct {
	t    testing.TB
	done chan locked
}

type locked struct {
	l   *interlock.Lease
	err error
}

// startLock locks in the background, and returns when the request is in the engine's queue, or granted because nobody
// is there any more.
func startLock(t testing.TB, url string, o *interlock.Options, name string) *locking {
	t.Helper()
	queued := make(chan struct{}, 64)
	if o == nil {
		o = &interlock.Options{}
	}
	mine := *o
	mine.Observer = &interlock.Observer{Waiting: func(context.Context, interlock.Event) { queued <- struct{}{} }}
	w := lockWith(t, openLocks(t, url, &mine), name)
	select {
	case <-queued:
	case got := <-w.done:
		w.done <- got // for who asks
	case <-time.After(patience):
		t.Fatalf("not after %v: a wait to be queued", patience)
	}
	return w
}

func lockWith(t testing.TB, c *interlock.Client, name string) *locking {
	w := &locking{t: t, done: make(chan locked, 1)}
	ctx := bounded(t)
	go func() { // ends with ctx
		l, err := c.Lock(ctx, name)
		w.done <- locked{l, err}
	}()
	return w
}

func (w *locking) granted(what string) locked {
	w.t.Helper()
	got := receive(w.t, what, w.done)
	if got.err != nil {
		w.t.Fatalf("%s: %v", what, got.err)
	}
	return got
}

func (w *locking) stillWaits(what string) {
	w.t.Helper()
	select {
	case got := <-w.done:
		w.t.Fatalf("%s: the wait has ended: %v", what, got.err)
	case <-time.After(20 * time.Millisecond):
	}
}

// gone waits for the end of l, and returns when it was told.
func gone(t testing.TB, l *interlock.Lease) time.Time {
	t.Helper()
	receive(t, "the loss to be told", l.Lost())
	return time.Now()
}

// goesOn fails unless a client locks and unlocks in the end, although a server may be too slow at first, and a session
// too short.
func goesOn(t testing.TB, c *interlock.Client, name string) {
	t.Helper()
	soon(t, "the client to go on", func() bool {
		l, err := c.Lock(bounded(t), name)
		if err != nil && !errors.Is(err, interlock.ErrUnavailable) {
			t.Fatalf("Lock %q: %v", name, err)
		}
		return err == nil && l.Unlock(bounded(t)) == nil
	})
}

// staysTrusted fails if a hold is lost although all is well, three times in a row: the machine may stand still.
func staysTrusted(t *testing.T, lost func() error) {
	t.Helper()
	for range 2 {
		err := lost()
		if err == nil {
			return
		}
		t.Logf("once more: %v", err)
	}
	if err := lost(); err != nil {
		t.Error(err)
	}
}
