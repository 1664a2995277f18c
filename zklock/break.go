// Break, by which an operator ends a hold: its node is deleted, and the watch of watch.go tells the holder. release.go
// has the ordinary end of a hold.
//
// No notice is left for the holder: a node that is gone, and that the holder has not deleted itself, can only have been
// broken. An operator's own delete is told in the same way.

package zklock

import (
	"context"
	"errors"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

// Break ends the hold that has the given token: it deletes its node, so that its release finds nothing, and lets in the
// next waiter. The holder watches its own node and learns of it at once; the holder of a hold younger than a tenth of a
// second learns of it when the hold is that old. It costs three round trips and one for each holder.
//
// It returns driver.ErrNotHeld if nobody holds the lock, and a *driver.HeldError if the token is not a current one.
func (d *Driver) Break(ctx context.Context, key driver.Key, token uint64) error {
	if err := d.breakOf(ctx, key, token); err != nil {
		return d.explainOperator(ctx, "break", key.Name, err)
	}
	return nil
}

// breakOf is Break without the classes of errors. It begins anew if the holder has left in between, because another may
// hold the lock by now, whose token is another.
func (d *Driver) breakOf(ctx context.Context, key driver.Key, token uint64) error {
	l, err := d.ready(ctx, nil, reach, false)
	if err != nil {
		return err
	}
	// So that the list is not older than this call.
	if err := l.agree(ctx); err != nil {
		return err
	}
	lock := d.tree.lock(key)
	for {
		nodes, err := l.queue(ctx, lock)
		if err != nil {
			return err
		}
		holders := holdersOf(nodes)
		if len(holders) == 0 {
			return driver.ErrNotHeld
		}
		current := withToken(holders, token)
		if current == nil {
			return heldBy(key, holders[0])
		}
		// The node is deleted by its path, which no later request ever has, so a break that comes late ends nothing
		// else.
		err = l.remove(ctx, lock+"/"+current.name)
		if errors.Is(err, zk.ErrNoNode) { // it was released meanwhile
			continue
		}
		if err == nil {
			if current.retained { // its client removes the mark too, unless it stands still
				l.s.d.spawn(func() { _ = l.delete(l.s.d.life, markOf(lock+"/"+current.name)) })
			}
			l.tidy(lock)
		}
		return err
	}
}

// withToken returns the holder that has the token, or nil. Any token of its block is the holder's: after passes inside
// the process it has a later one than the first, which the servers do not know.
func withToken(holders []*seen, token uint64) *seen {
	for _, h := range holders {
		if h.token() <= token && token-h.token() < uint64(h.Tokens) {
			return h
		}
	}
	return nil
}

// explainOperator says what an error means to an operator. Most errors mean that the outcome is unknown.
func (d *Driver) explainOperator(ctx context.Context, op, name string, err error) error {
	var held *driver.HeldError
	switch {
	case errors.As(err, &held), errors.Is(err, driver.ErrNotHeld), errors.Is(err, driver.ErrClosed):
		return err
	case ctx.Err() != nil:
		return ctx.Err()
	case errors.Is(err, errOver) && d.isClosed():
		return driver.ErrClosed
	}
	return classed(op, name, err)
}

// isClosed reports whether Close was called.
func (d *Driver) isClosed() bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.closed
}
