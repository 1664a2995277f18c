package memlock

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The driver's side of memory: each method is one step of the state machine (queue.go) under the store's mutex
// (store.go). Those that may block go on in wait.go.

var (
	_ driver.Driver    = (*Driver)(nil)
	_ driver.Renewer   = (*Driver)(nil)
	_ driver.Requeuer  = (*Driver)(nil)
	_ driver.Converter = (*Driver)(nil)
)

// Options are the options of a store. The zero value and nil mean the same.
type Options struct {
	_ struct{}
}

// Driver is one client's access to a store. Make one with [New] or [Driver.Peer], or by URL. Its methods may be called
// from several goroutines at once; it must not be copied.
type Driver struct {
	store  *store
	closed bool // guarded by store.mu
}

// New returns a client of a new store, which only its peers share. It cannot fail, and options may be nil.
func New(_ *Options) *Driver {
	return newStore(0).open()
}

// Peer returns another client of d's store, as another process would be one. It is closed by itself; the store lives
// until its last client is closed.
func (d *Driver) Peer() *Driver { return d.store.open() }

// Traits describes the engine.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Engine:   "memory",
		Lifetime: driver.Leases,
		Local:    true,
		Kinds:    append(slices.Clone(kinds), driver.KindLatch, driver.KindCond),
	}
}

// Acquire waits until r is granted or refused, ctx ends, or d is closed. If ctx ends the wait, r is no longer queued
// when Acquire returns. A grant that came first is returned although ctx has ended: otherwise it would be lost.
func (d *Driver) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	own := d.own(r)
	return d.enter(ctx, own, func(now time.Time, q *state) (*record, error) { return q.acquire(now, own) })
}

// Requeue releases give and acquires r in one step. If either is refused, nothing happens; in particular give is still
// held. A Try is refused, because it never queues. It waits as Acquire does.
func (d *Driver) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	own := d.own(r)
	return d.enter(ctx, own, func(now time.Time, q *state) (*record, error) { return q.requeue(now, give, own) })
}

// Release ends or shortens a hold, or undoes a request. It does not wait, so it works although ctx has ended.
func (d *Driver) Release(_ context.Context, r *driver.Release) error {
	return d.do(func(now time.Time, q *state) error { return q.release(now, r) })
}

// Renew renews the holds of the batch at one instant. It does not wait. It calls done without the store's mutex,
// because done may call the driver.
func (d *Driver) Renew(_ context.Context, batch []driver.Renewal, done func(i int, err error)) {
	answers := make([]error, len(batch))
	err := d.do(func(now time.Time, q *state) error {
		for i := range batch {
			answers[i] = q.renew(now, &batch[i])
		}
		return nil
	})
	for i, answer := range answers {
		if err != nil {
			answer = err
		}
		done(i, answer)
	}
}

// Close ends d's waits with driver.ErrClosed; nothing of them stays queued. Its holds end with their leases. Other
// clients of the store are not affected. A second Close does nothing.
func (d *Driver) Close() error {
	d.store.close(d)
	return nil
}

// do runs one step that does not wait. The instant is read under the mutex, so that steps see time go forward only.
func (d *Driver) do(step func(now time.Time, q *state) error) error {
	s := d.store
	s.mu.Lock()
	if d.closed {
		s.mu.Unlock()
		return driver.ErrClosed
	}
	now := time.Now()
	err := step(now, s.q)
	s.finish()
	s.unlock()
	return err
}

// own returns a copy of r: the caller may change its own after the call. After Close no hold of d's is told anything,
// as if its process had ended.
func (d *Driver) own(r *driver.Request) *driver.Request {
	own := *r
	if tell := r.Lost; tell != nil {
		own.Lost = func(reason driver.LostReason, cause error) {
			if !d.isClosed() {
				tell(reason, cause)
			}
		}
	}
	if tell := r.Wanted; tell != nil {
		own.Wanted = func() {
			if !d.isClosed() {
				tell()
			}
		}
	}
	return &own
}

// isClosed is called without the store's mutex: Lost and Wanted are.
func (d *Driver) isClosed() bool {
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	return d.closed
}
