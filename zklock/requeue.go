// Requeue: giving back and asking again in one transaction. acquire.go does the rest, with the hold in attempt.give.
//
// The turns of both requests are taken, the old one's first, so that no release of the old hold is under way beside the
// transaction that deletes it. A requeue whose outcome is unknown leaves the old hold marked unsure; see leave.

package zklock

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// Requeue releases give and acquires r at the end of the queue, in one transaction and one round trip; then it waits as
// Acquire does. If the hold is over, the error matches driver.ErrLost. The turn of the old hold is kept until its end
// is known, or until the call ends.
func (d *Driver) Requeue(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
	if err := requeueable(give, r); err != nil {
		return driver.Grant{}, err
	}
	e, err := d.holdOf(give)
	if err != nil {
		if d.knows(r.ID) { // it is asked once more, and has given the hold back already
			return d.Acquire(ctx, r)
		}
		return driver.Grant{}, err
	}
	if err := e.take(ctx); err != nil {
		return driver.Grant{}, err
	}
	if _, err := d.holdOf(give); err != nil { // a release was quicker
		e.give()
		return driver.Grant{}, err
	}
	return d.acquire(ctx, r, e)
}

// knows reports whether a request was asked for and is not over.
func (d *Driver) knows(id string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.entries[id] != nil
}

// requeueable refuses what is not one hold for another of the same lock.
func requeueable(give *driver.Release, r *driver.Request) error {
	switch {
	case give.Undo, r.Try, give.Key != r.Key:
		return fmt.Errorf("zk: this requeue is none of one hold for a wait for the same lock: %w",
			driver.ErrUnsupported)
	}
	return servable(r)
}

// given records that the hold to be given back has ended. It is called as soon as the new node is known, since both
// were one transaction.
func (a *attempt) given() {
	if a.give == nil {
		return
	}
	a.d.over(a.give, "")
	a.d.sweepMark(a.give)
	a.keep()
}

// keep gives up the turn of the hold that was to be given back. Whether it was given back is unknown unless it is over.
func (a *attempt) keep() {
	if a.give != nil {
		a.give.give()
		a.give = nil
	}
}
