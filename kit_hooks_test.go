package interlock

import (
	"context"
	"errors"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	_ "github.com/interlock-go/interlock/internal/quiet"
	"github.com/interlock-go/interlock/memlock"
)

// What most tests of this package stand on: virtual time (bubble), an engine that the test controls (hooks), and calls
// in goroutines of their own.

// hooks is a driver between the core and a memory engine, in which a test can hold up, count and replace calls. Its
// Traits do not say Local, as if there were a network in between.
type hooks struct {
	*memlock.Driver
	mu      sync.Mutex // guards the functions
	acquire func(ctx context.Context, r *driver.Request) (driver.Grant, error)
	release func(ctx context.Context, r *driver.Release) error
	renew   func(ctx context.Context, batch []driver.Renewal, done func(int, error))
	requeue func(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error)

	convert func(ctx context.Context, beside string, r *driver.Request) (driver.Grant, error)

	acquireAll func(ctx context.Context, rs []*driver.Request) ([]driver.Grant, error)

	acquires, releases, renewals, requeues, converts, batches, bundles, looks atomic.Int64
}

func newHooks(d *memlock.Driver) *hooks {
	h := &hooks{Driver: d}
	h.acquire, h.release, h.renew, h.requeue, h.convert = d.Acquire, d.Release, d.Renew, d.Requeue, d.Convert
	h.acquireAll = d.AcquireAll
	return h
}

func (h *hooks) Traits() driver.Traits {
	t := h.Driver.Traits()
	t.Local = false
	return t
}

func (h *hooks) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	h.looks.Add(1)
	return h.Driver.Look(ctx, key)
}

func (h *hooks) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	h.acquires.Add(1)
	return get(h, &h.acquire)(ctx, r)
}

func (h *hooks) Release(ctx context.Context, r *driver.Release) error {
	h.releases.Add(1)
	return get(h, &h.release)(ctx, r)
}

func (h *hooks) Renew(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
	h.batches.Add(1)
	h.renewals.Add(int64(len(batch)))
	get(h, &h.renew)(ctx, batch, done)
}

func (h *hooks) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	h.requeues.Add(1)
	return get(h, &h.requeue)(ctx, give, r)
}

func (h *hooks) Convert(ctx context.Context, beside string, r *driver.Request) (driver.Grant, error) {
	h.converts.Add(1)
	return get(h, &h.convert)(ctx, beside, r)
}

func (h *hooks) AcquireAll(ctx context.Context, rs []*driver.Request) ([]driver.Grant, error) {
	h.bundles.Add(1)
	return get(h, &h.acquireAll)(ctx, rs)
}

func get[F any](h *hooks, f *F) F {
	h.mu.Lock()
	defer h.mu.Unlock()
	return *f
}

// on replaces one of h's functions, under its mutex.
func on[F any](h *hooks, f *F, by F) {
	h.mu.Lock()
	defer h.mu.Unlock()
	*f = by
}

// noRenewals answers no renewal until the context ends, as a hung server does.
func noRenewals(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
	<-ctx.Done()
	for i := range batch {
		done(i, ctx.Err())
	}
}

// bubble runs f in virtual time with a client on a memory engine of its own, and closes the client. It fails if a
// goroutine stays, as every bubble of testing/synctest does.
func bubble(t *testing.T, opts *Options, f func(t *testing.T, c *Client, h *hooks)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := memlock.New(nil)
		h := newHooks(d)
		c := mustNew(t, h, opts)
		defer func() { // also after a Fatal, or the bubble would complain about goroutines instead
			if err := c.Close(); err != nil && !errors.Is(err, ErrUnavailable) {
				t.Errorf("Close: %v", err)
			}
			if err := d.Close(); err != nil {
				t.Errorf("close the driver: %v", err)
			}
		}()
		f(t, c, h)
	})
}

func mustNew(t *testing.T, d driver.Driver, opts *Options) *Client {
	t.Helper()
	c, err := New(d, opts)
	if err != nil {
		t.Fatalf("New: %v", err)
	}
	return c
}

// peer returns another client on the same engine, closed at the end of the test.
func peer(t *testing.T, h *hooks, opts *Options) *Client {
	t.Helper()
	d := h.Peer()
	c := mustNew(t, d, opts)
	t.Cleanup(func() {
		_ = c.Close()
		_ = d.Close()
	})
	return c
}

func mustLock(t *testing.T, ctx context.Context, c *Client, name string) *Lease {
	t.Helper()
	l, err := c.Lock(ctx, name)
	if err != nil {
		t.Fatalf("Lock(%q): %v", name, err)
	}
	return l
}

func mustUnlock(t *testing.T, l *Lease) {
	t.Helper()
	if err := l.Unlock(t.Context()); err != nil {
		t.Fatalf("Unlock: %v", err)
	}
}

// lockLater locks in a goroutine and returns where the outcome will be.
func lockLater(ctx context.Context, c *Client, name string) <-chan outcome {
	out := make(chan outcome, 1)
	go func() {
		l, err := c.Lock(ctx, name)
		out <- outcome{l, err}
	}()
	return out
}

type outcome struct {
	lease *Lease
	err   error
}

// isClosed reports whether ch is closed already.
func isClosed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

func wantLost(t *testing.T, err error, reason LostReason) {
	t.Helper()
	var lost *LostError
	if !errors.As(err, &lost) || lost.Reason != reason || !errors.Is(err, ErrLost) {
		t.Fatalf("got %v, want a *LostError with reason %q", err, reason)
	}
}

// settled returns the number of goroutines once those that are ending have ended.
func settled() int {
	n := runtime.NumGoroutine()
	for range 100 {
		runtime.Gosched()
		n = min(n, runtime.NumGoroutine())
	}
	return n
}

// gauge counts how many owners are inside at once.
type gauge struct {
	mu       sync.Mutex
	now, max int
}

func (g *gauge) enter() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now++
	g.max = max(g.max, g.now)
}

func (g *gauge) leave() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.now--
}

const second = time.Second
