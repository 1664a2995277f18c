// Requeue: giving back and asking again in one transaction. acquire.go and enqueue.go do the rest, with the hold in
// attempt.give.
//
// One transaction and not two: it costs one round trip, and a process is at no moment without either the hold or a
// place in the queue.

package etcdlock

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	clientv3 "go.etcd.io/etcd/client/v3"
)

// Requeue deletes the hold's key and puts another at the end of the queue, in one transaction, and then waits as
// Acquire does. If the hold is over, the error matches driver.ErrLost.
func (d *Driver) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	if err := requeueable(give, r); err != nil {
		return driver.Grant{}, err
	}
	// The entry, and not only its ID, is needed: the transaction compares the revision of its key.
	old := d.heldAs(holdID{give.Key, give.ID})
	if old == nil {
		return d.requeueAgain(ctx, r)
	}
	return d.acquire(ctx, r, &giving{old, give.Horizon, ""})
}

// giving is a hold that a requeue gives back.
type giving struct {
	*entry
	horizon time.Duration // of its release
	tomb    string        // refuses late copies of its request; "" if none is under way
}

// ops are the operations that give it back, for a transaction in session s that also compares its revision and deletes
// its key.
func (g *giving) ops(s *session) []clientv3.Op {
	was := g.see()
	ops := slices.Concat(g.d.servedOps(&was), g.d.answerOps(&was))
	if was.open {
		g.tomb = g.d.names.tomb(g.r.Key, g.r.ID)
		ops = append(ops, clientv3.OpPut(g.tomb, "", clientv3.WithLease(s.id)))
	}
	return ops
}

// heldAs returns the entry of a hold, or nil.
func (d *Driver) heldAs(id holdID) *entry {
	d.mu.Lock()
	defer d.mu.Unlock()
	if e := d.entries[id]; e != nil && e.granted && e.ended == "" && !e.released {
		return e
	}
	return nil
}

// requeueAgain is a requeue that finds no hold to give back. If the request is known, that has happened already. An
// earlier call has done that and then ended with its context, while the request still waits in the queue.
func (d *Driver) requeueAgain(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	id := holdID{r.Key, r.ID}
	d.mu.Lock()
	e, closed := d.entries[id], d.closed
	known := e != nil && e.revision != 0 || d.gone.Has(id)
	d.mu.Unlock()
	switch {
	case closed:
		return driver.Grant{}, driver.ErrClosed
	case !known:
		return driver.Grant{}, lost(r.Key, 0, driver.LostExpired, errNothingToGive)
	}
	// The request is in the queue already, so acquiring it goes on where it stands.
	return d.Acquire(ctx, r)
}

// requeueable refuses what is not one exclusive hold for another of the same lock.
func requeueable(give *driver.Release, r *driver.Request) error {
	switch {
	case give.Key != r.Key:
		return fmt.Errorf("etcd: a requeue for another lock: %w", driver.ErrUnsupported)
	case give.Undo || r.Try || r.Mode != driver.Exclusive:
		return fmt.Errorf("etcd: such a requeue: %w", driver.ErrUnsupported)
	}
	return servable(r)
}
