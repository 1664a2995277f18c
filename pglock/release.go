package pglock

import (
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Release gives the lock back in one round trip, over the connection that holds it. If that connection breaks meanwhile,
// it is given up, and the driver sees to it that the server ends the session; until that is known the outcome is unknown.
func (d *Driver) Release(ctx context.Context, r *driver.Release) error {
	if err := ctx.Err(); err != nil && !r.Undo {
		return err
	}
	d.mu.Lock()
	e := d.entries[r.ID]
	switch {
	case e != nil && e.r.Key != r.Key, e == nil && !r.Undo:
		defer d.mu.Unlock()
		return d.gone.of(r)
	case e == nil:
		defer d.mu.Unlock()
		d.gone.bury(r.ID, epitaph{undone: true, until: time.Now().Add(r.Horizon)})
		return nil
	}
	if r.Undo {
		e.epitaph = epitaph{undone: true, until: time.Now().Add(r.Horizon)}
	} else if !e.epitaph.is() {
		e.epitaph = epitaph{released: true}
	}
	d.cancel(e, gone(e.r.Key))
	var c *conn
	if e.phase == held {
		e.phase, c = releasing, e.c
	}
	if r.Keep > 0 && c != nil {
		defer d.mu.Unlock()
		return d.keep(e, r.Keep)
	}
	d.mu.Unlock()
	if c != nil {
		c.submit(job{run: e.giveBack, dead: func(error) {}}) // if it has ended, died has taken e over
	}
	return d.awaitOver(ctx, e, r.Undo)
}

// cancel ends a request that is not granted yet, as far as the caller is concerned; what is under way in the server ends
// soon after. The caller holds Driver.mu.
func (d *Driver) cancel(e *entry, err error) {
	if e.ending || e.phase != asking && e.phase != waiting {
		return
	}
	e.ending = true
	e.settle(err)
	close(e.stop)
	if p := d.place(e.num); e.phase == asking && p.asker != e {
		d.drop(e) // it has not been asked for
	}
	d.tidy(e.num)
}

// awaitOver waits until nothing is left of e.
func (d *Driver) awaitOver(ctx context.Context, e *entry, undo bool) error {
	d.mu.Lock()
	c, unsure := e.c, e.phase == releasing
	d.mu.Unlock()
	var torn <-chan struct{} // who waits for a release learns at once that it has become uncertain
	if unsure && c != nil {
		torn = c.done
	}
	select {
	case <-torn:
		if !d.hasLost(e) {
			break
		}
		select { // it was over before, so there is nothing to be unsure of but when the server knows
		case <-e.over:
		case <-ctx.Done():
		case <-d.base.Done():
		}
	case <-e.over:
	case <-ctx.Done():
	case <-d.base.Done():
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case e.phase == over && undo:
		return nil
	case e.phase == over && !e.credited && e.epitaph.reason == "":
		e.credited = true // of several at once one has ended it
		return nil
	case e.phase == over:
		return d.gone.of(&driver.Release{Key: e.r.Key, ID: e.r.ID})
	case d.ended:
		return errClosed
	case ctx.Err() != nil:
		return ctx.Err()
	}
	return unavailable("release", e.r.Name, errLost)
}

// hasLost reports whether a hold was lost, by release or not.
func (d *Driver) hasLost(e *entry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return e.epitaph.reason != ""
}

// giveBack releases e on c, in c's goroutine.
func (e *entry) giveBack(c *conn) {
	d := e.d
	had, err := c.unlock(e.num)
	if c.broken == nil {
		switch {
		case err != nil:
			c.broken = err // it may be held, and nobody would know
		case !had:
			c.broken = errSwapped
		}
	}
	if c.broken != nil {
		return // died goes on with it
	}
	d.mu.Lock()
	d.drop(e)
	d.mu.Unlock()
	if c.waits {
		d.toPool(c)
	}
}

// keep gives e back after a while. It is as good as released for everybody but the server. The caller holds Driver.mu.
func (d *Driver) keep(e *entry, kept time.Duration) error {
	if d.ended {
		return errClosed
	}
	delete(d.entries, e.r.ID)
	d.gone.bury(e.r.ID, epitaph{released: true})
	c := e.c
	d.work.Go(func() { // ends with the time, or by Close, which gives everything back
		timer := time.NewTimer(kept)
		defer timer.Stop()
		select {
		case <-timer.C:
			c.submit(job{run: e.giveBack, dead: func(error) {}})
		case <-d.base.Done():
		}
	})
	return nil
}

// lostError says how a hold of this driver ended.
func (e *entry) lostError() error {
	if e.epitaph.reason == "" {
		return gone(e.r.Key)
	}
	return &driver.LostError{Kind: e.r.Kind, Name: e.r.Name, Token: e.token, Reason: e.epitaph.reason, Cause: e.epitaph.cause}
}

// died takes in that a connection has ended. Its goroutine calls it.
func (d *Driver) died(c *conn) {
	var next []func()
	d.mu.Lock()
	d.leave(c)
	for e := range c.holds {
		switch e.phase {
		case asking, waiting:
			e.settle(unavailable("acquire", e.r.Name, c.broken))
			next = append(next, d.asked(e)...)
		case held:
			e.epitaph = epitaph{reason: driver.LostSession, cause: c.broken, token: e.token}
			if lost := e.r.Lost; lost != nil && !d.closed {
				next = append(next, func() { lost(driver.LostSession, c.broken) })
			}
		case releasing:
			e.credited = true // nobody knows whether it was by the release
			if !e.epitaph.undone && e.epitaph.reason == "" && d.clock()-c.lastSign() >= d.opts.Timeout {
				e.epitaph = epitaph{reason: driver.LostSession, cause: c.broken, token: e.token}
			}
		case doubt, over:
		}
		e.phase = doubt
		p := d.place(e.num)
		p.owners = slices.DeleteFunc(p.owners, func(other *entry) bool { return other == e })
		d.tidy(e.num)
	}
	if len(c.holds) > 0 && !d.ended {
		d.work.Go(func() { d.bury(c) }) // ends when the server has no such session, or by Close
	}
	d.mu.Unlock()
	runAll(next)
}
