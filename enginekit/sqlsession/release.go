// Release, and what happens when a connection ends. giveback.go talks to the server; bury.go follows when the
// connection is gone.

package sqlsession

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Release implements [driver.Driver]. It gives the lock back in one round trip, over the connection that holds it, and
// blocks until the server has it or ctx ends. If the connection breaks meanwhile, the core makes sure that the server
// ends the session; until that is known, the outcome is unknown. An error that matches driver.ErrLost says that the
// hold was over before.
func (d *Core) Release(ctx context.Context, r *driver.Release) error {
	if err := ctx.Err(); err != nil && !r.Undo {
		return err
	}
	d.mu.Lock()
	e := d.entries[r.ID]
	switch {
	// A plain release of something that is not there says how it ended.
	case e != nil && e.Request.Key != r.Key, e == nil && !r.Undo:
		defer d.mu.Unlock()
		return d.endOf(r)
	case e == nil:
		defer d.mu.Unlock()
		// Nothing of it has come yet, but a late copy may: it is refused.
		d.remember(r.ID, epitaph{undone: true, until: time.Now().Add(r.Horizon)})
		return nil
	}
	if r.Undo {
		e.epitaph = epitaph{undone: true, until: time.Now().Add(r.Horizon)}
	} else if !e.epitaph.is() {
		e.epitaph = epitaph{released: true}
	}
	if e.phase == asking || e.phase == waiting {
		d.cancel(e, gone(e.Request.Key))
	}
	var c *Conn
	if e.phase == held {
		e.phase, c, e.ended = releasing, e.c, d.Clock()
	}
	d.mu.Unlock()
	if c != nil {
		c.Submit(Job{
			inline: func(c *Conn) bool { return e.giveBackInline(ctx, c) }, Run: e.giveBack,
			Dead: func(error) {}, // if it has ended, died has taken e over
		})
	}
	return d.awaitOver(ctx, e, r.Undo)
}

// cancel ends a request that is not granted yet, as far as the caller is concerned. What is under way in the server
// ends soon after. The caller holds Core.mu.
func (d *Core) cancel(e *Entry, err error) {
	if e.ending || e.phase != asking && e.phase != waiting {
		return
	}
	e.ending = true
	e.settle(err)
	close(e.stop)
	if p := d.lockState(e.lock); e.phase == asking && p.asker != e && e.c == nil {
		// It has not been asked for. One that was passed by has been, and its answer may still come.
		d.drop(e)
	}
	d.tidy(e.lock)
}

// awaitOver blocks until nothing is left of e, or until it is certain that this is not known.
func (d *Core) awaitOver(ctx context.Context, e *Entry, undo bool) error {
	d.mu.Lock()
	c, unsure, ended, denied := e.c, e.phase == releasing, e.phase == over, e.awaitDenial()
	d.mu.Unlock()
	if ended { // it nearly always is, if it was given back in this goroutine
		return d.outcome(ctx, e, undo)
	}
	// A release learns at once that it has become uncertain.
	var torn <-chan struct{}
	if unsure && c != nil {
		torn = c.done
	}
	select {
	case <-denied:
	case <-torn:
		if !d.hasLost(e) {
			break
		}
		// It was lost before, so the only open question is when the server knows.
		select {
		case <-e.over:
		case <-ctx.Done():
		case <-d.base.Done():
		}
	case <-e.over:
	case <-ctx.Done():
	case <-d.base.Done():
	}
	return d.outcome(ctx, e, undo)
}

// outcome is what is known of a release.
func (d *Core) outcome(ctx context.Context, e *Entry, undo bool) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	switch {
	case e.phase == over && undo:
		return nil
	case e.phase == over && !e.credited && e.epitaph.reason == "":
		e.credited = true // of several at once, one has ended it
		return nil
	case e.phase == over:
		return d.endOf(&driver.Release{Key: e.Request.Key, ID: e.Request.ID})
	case d.ended:
		return driver.ErrClosed
	case ctx.Err() != nil:
		return ctx.Err()
	case e.denied != nil:
		return d.Unavailable("release", e.Request.Name, e.denied)
	}
	return d.Unavailable("release", e.Request.Name, ErrLost)
}

// awaitDenial returns what is closed when the server refuses to take e back, and goes on refusing. It is nil for a
// request of which nothing is left, to spare the usual release a channel. The caller holds Core.mu.
func (e *Entry) awaitDenial() <-chan struct{} {
	if e.phase == over {
		return nil
	}
	if e.denial == nil {
		e.denial = make(chan struct{})
		if e.denied != nil {
			close(e.denial)
		}
	}
	return e.denial
}

// hasLost reports whether a hold was lost, and so not ended by a release.
func (d *Core) hasLost(e *Entry) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	return e.epitaph.reason != ""
}

// lostError says how a hold of this core ended. The caller holds Core.mu.
func (e *Entry) lostError() error {
	if e.epitaph.reason == "" {
		return gone(e.Request.Key)
	}
	return &driver.LostError{
		Kind: e.Request.Kind, Name: e.Request.Name, Token: e.token, Reason: e.epitaph.reason,
		Cause: e.epitaph.cause,
	}
}

// died records that a connection has ended. Its goroutine calls it, once. Each request of the connection is in doubt
// from then on: the server may still have what it held, until bury has made sure.
func (d *Core) died(c *Conn) {
	var next []func()
	d.mu.Lock()
	d.leave(c)
	for e := range c.holds {
		switch e.phase {
		case asking, waiting:
			e.settle(d.Unavailable("acquire", e.Request.Name, c.broken))
			next = append(next, d.asked(e)...)
		case held:
			e.epitaph = epitaph{reason: driver.LostSession, cause: c.broken, token: e.token}
			if lost := e.Request.Lost; lost != nil && !d.closed {
				next = append(next, func() { lost(driver.LostSession, c.broken) })
			}
		case releasing:
			// The release has ended it, or the session's end after that: nobody knows which, and to the owner, who had
			// ended it, it is the same. It was lost before if the session was beyond its timeout when the release
			// began. When the connection ends says nothing: an answer that is lost is waited for for a timeout.
			if !e.epitaph.undone && e.epitaph.reason == "" && e.ended-c.lastSign() >= d.config.Timeout {
				e.epitaph = epitaph{reason: driver.LostSession, cause: c.broken, token: e.token}
			}
			e.epitaph.torn = e.epitaph.released
		case doubt, over:
		}
		e.phase = doubt
		e.denied, e.denial = nil, nil // nobody is asked to take it back any more
		d.disown(e)
	}
	if len(c.holds) > 0 && !d.ended {
		d.work.Go(func() { d.bury(c) }) // ends when the server has no such session, or by Close
	}
	d.mu.Unlock()
	runAll(next)
}
