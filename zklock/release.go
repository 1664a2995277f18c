// Release and undo: they remove the node of a request, whatever state it is in. entry.go forgets the request, retain.go
// removes its mark.
//
// A release deletes by path, and a path is used once, so a copy that arrives late ends nothing else. That is why it is
// sent without the check of the session's version that an acquisition needs.

package zklock

import (
	"context"
	"errors"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

// Release removes the hold's node in one round trip; the server then wakes the next waiter, and nobody else. It is sent
// once. While no server can be reached, it blocks until one can or ctx ends. An error that matches driver.ErrLost says
// that the hold was over before; after any other error the outcome is unknown, and the caller releases again. If that
// finds nothing while the session is trusted, the first has done it, and the error is nil.
func (d *Driver) Release(ctx context.Context, r *driver.Release) error {
	if r.Undo {
		return d.undo(ctx, r)
	}
	e, err := d.holdOf(r)
	if err != nil {
		return err
	}
	if err := e.take(ctx); err != nil {
		return err
	}
	defer e.give()
	if _, err := d.holdOf(r); err != nil { // another release was quicker
		return err
	}
	// In the hold's own session: in any other there is nothing of it.
	l, err := d.linkOf(ctx, e.s)
	if err == nil {
		err = d.leave(ctx, l, e)
	}
	return d.holdError(ctx, "unlock", e, err)
}

// holdOf returns the entry of the hold that r is about, or an error that matches driver.ErrLost.
func (d *Driver) holdOf(r *driver.Release) (*entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, driver.ErrClosed
	}
	e := d.entries[r.ID]
	if e == nil || e.key != r.Key || e.phase != held {
		reason, _ := d.gone.Epitaph(r.ID)
		return nil, lostError(r.Key, reason)
	}
	return e, nil
}

// leave ends a hold. The caller has its turn.
func (d *Driver) leave(ctx context.Context, l *link, e *entry) error {
	d.mu.Lock()
	unsure := e.unsure
	// Set before the request is sent: the event that follows must not look like a break, and a later release must know
	// that this one may have been carried out.
	e.ending, e.unsure = true, true
	d.mu.Unlock()
	err := l.removeHold(ctx, e)
	e.s.removal(e.path, err)
	switch {
	case err == nil:
		d.over(e, "")
		l.tidy(d.tree.lock(e.key))
	case errors.Is(err, zk.ErrNoNode):
		// Only an operator can have removed it.
		if !unsure {
			d.broke(e)
			return lostError(e.key, driver.LostBroken)
		}
		d.over(e, "") // an earlier release has done it, or somebody else: that is not known
		d.sweepMark(e)
		// While the session is trusted, its end cannot have done it, so most likely the earlier release has.
		if time.Since(e.s.Confirmed()) < e.s.timeout {
			return nil
		}
		return lostError(e.key, "")
	}
	return err
}

// holdError says what an error means to a caller that does something with the hold e.
func (d *Driver) holdError(ctx context.Context, op string, e *entry, err error) error {
	switch {
	case err == nil, errors.Is(err, driver.ErrLost), errors.Is(err, driver.ErrClosed):
		return err
	case errors.Is(err, errOver):
		// The session is over, and with it the hold.
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.closed {
			return driver.ErrClosed
		}
		// With its reason, so that a release that is asked once more gets the same answer.
		d.forget(e, driver.LostSession)
		return lostError(e.key, driver.LostSession)
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return classed(op, e.key.Name, maybeSent(err))
}

// undo removes whatever a request has left: its wait, its node, or a node that is still being made. It blocks until
// that is certain.
func (d *Driver) undo(ctx context.Context, r *driver.Release) error {
	e, err := d.takeBack(r)
	if e == nil {
		return err
	}
	if err := e.take(ctx); err != nil {
		return err
	}
	defer e.give()
	err = d.erase(ctx, e)
	// The session took it along, or an operator.
	if err == nil || errors.Is(err, errOver) || errors.Is(err, driver.ErrLost) {
		d.over(e, "")
		return nil
	}
	return d.holdError(ctx, "unlock", e, err)
}

// takeBack makes copies of the request refused from now on, and ends its wait. It returns nil if there is nothing to
// erase. The phase changes before anything is sent: from now on the attempt that waits cannot become a hold.
func (d *Driver) takeBack(r *driver.Release) (*entry, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return nil, driver.ErrClosed
	}
	e := d.entries[r.ID]
	// Nothing is known of it, but a copy may still come from the caller.
	if e == nil {
		d.gone.Bury(r.ID, "")
		return nil, nil //nolint:nilnil // there is nothing, and that is no error
	}
	if e.phase == asking {
		e.phase = ended
		d.gone.Bury(e.id, "")
		close(e.wait.gone) // the waiting attempt returns and gives up its turn
	}
	return e, nil
}

// erase removes the node of e, which is known, being made, or not there. The caller has the turn of e. The order is:
// know the node, delete it, forget the wait. A failure in between leaves the entry as it was, and the undo is repeated.
func (d *Driver) erase(ctx context.Context, e *entry) error {
	if e.s == nil { // nothing was sent
		return nil
	}
	if e.wait == nil { // a hold
		l, err := d.linkOf(ctx, e.s)
		if err != nil {
			return err
		}
		return d.leave(ctx, l, e)
	}
	path, err := d.whatIsLeft(ctx, e)
	if err != nil || path == "" {
		return err
	}
	l, err := d.linkOf(ctx, e.s)
	if err != nil {
		return err
	}
	err = l.delete(ctx, path)
	if e.s.removal(path, err); err != nil {
		return err
	}
	// The watch may stay armed, but must not wake this request any more.
	if e.wait.blocker != "" {
		e.s.unwatch(e, e.wait.blocker)
	}
	l.tidy(d.tree.lock(e.key))
	return nil
}

// whatIsLeft returns the path of the node of e, or "", when it is certain that there is no other one. It waits for a
// making that is under way and does not give it up, because a node that comes later would be nobody's.
func (d *Driver) whatIsLeft(ctx context.Context, e *entry) (string, error) {
	m := e.wait.making
	if m == nil {
		return e.path, nil
	}
	select {
	case <-m.done:
	case <-e.s.over:
		return "", errOver
	case <-ctx.Done():
		return "", ctx.Err()
	}
	if !errors.Is(m.err, errNoAnswer) { // the attempt's end is known
		return m.path, nil
	}
	l, err := d.linkOf(ctx, e.s) // a later connection: that of m is broken
	if err != nil {
		return "", err
	}
	path, _, err := l.find(ctx, m)
	return path, err
}
