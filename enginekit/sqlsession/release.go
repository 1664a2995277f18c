// Release, giving a lock back to the server, and what happens when a connection ends.

package sqlsession

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
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

// Giving a lock back until the server has certainly taken it; died takes over when the connection ends.

// A session that was asked to give a lock back and has not said that it did may have it, and nobody would know. To end
// the session settles that, and ends all else that is held on it. So a session that answers, and merely refuses, is
// asked again. Meanwhile it gets no further locks, so that it can end with its last hold, or after a timeout; see
// enginekit.Refusals. It gets none either when it has taken all back: others have been opened for them.

// The pauses between two attempts after a refusal. They double. When they are at their most, the caller is told.
const (
	refusedFirst = 10 * time.Millisecond
	refusedMost  = time.Second
)

// giveBack releases e on c, in c's goroutine.
func (e *Entry) giveBack(c *Conn) {
	if err := c.session.Unlock(e); c.broken != nil {
		return // died goes on with it
	} else if err != nil {
		e.askBack(c, err, refusedFirst)
		return
	}
	e.gaveBack(c)
}

// gaveBack records that the server has the lock back. A connection of the pool has nothing else to do then, and one
// that gets no further locks ends with its last hold.
func (e *Entry) gaveBack(c *Conn) {
	d := e.d
	d.mu.Lock()
	d.drop(e)
	c.refused.Settled(e)
	ends := c.leaving && !c.isNeeded()
	d.mu.Unlock()
	if ends {
		c.end()
	} else if c.waits {
		d.toPool(c)
	}
}

// askBack goes on after the server has refused to take e back, in c's goroutine: it asks again after the pause. A
// connection that is spent is ended instead.
func (e *Entry) askBack(c *Conn, err error, pause time.Duration) {
	d := e.d
	d.mu.Lock()
	c.leaving = true
	d.retire(c)
	c.refused.Refused(e, err)
	spent := c.refused.Spent(d.config.Timeout, c.isNeeded())
	if pause >= refusedMost {
		e.deny(err)
	}
	d.mu.Unlock()
	if spent {
		c.Fail(err) // died goes on with it, and tells those who hold something on it
		return
	}
	d.config.Warn("the server refuses to take a lock back, and is asked again", e.Request.Name,
		d.dialect.Advise(err))
	again := func(c *Conn) {
		if err := c.session.Leave(e); c.broken != nil {
			return // died goes on with it
		} else if err != nil {
			e.askBack(c, err, min(2*pause, refusedMost))
			return
		}
		e.gaveBack(c)
	}
	// In a timer, so that the connection serves others during the pause. If it has ended by then, died has taken e
	// over.
	time.AfterFunc(pause, func() { c.Submit(Job{Run: again, Dead: func(error) {}}) })
}

// isNeeded reports whether something is held on c, or may have been granted there by now. The caller holds Core.mu.
func (c *Conn) isNeeded() bool {
	for e := range c.holds {
		if e.phase == held || e.phase == asking {
			return true
		}
	}
	return false
}

// deny tells a Release that waits that the server refuses, and each later one. The caller holds Core.mu.
func (e *Entry) deny(err error) {
	if e.denied == nil && e.denial != nil {
		close(e.denial)
	}
	e.denied = err
}

// doubts handles a try after which c may have the lock although the caller gets an error, in c's goroutine. Until that
// is settled, e is among the owners, so that nothing else asks for the lock on c.
func (e *Entry) doubts(c *Conn, err error) {
	d := e.d
	d.mu.Lock()
	e.phase = doubt
	d.own(e)
	next := d.asked(e)
	e.settle(d.Unavailable("acquire", e.Request.Name, err)) // unless a cancel has done it, with its own reason
	d.mu.Unlock()
	runAll(next)
	e.askBack(c, err, refusedFirst)
}

// Burying: making sure that the server ends a session whose connection has ended here.

// The pauses between two attempts to bury a connection. They double.
const (
	buryFirst = 2 * time.Millisecond
	buryMost  = time.Second
)

// bury makes sure that the server ends the session of a connection that has ended here. The server may not know of the
// end. It would keep the session's locks until it misses signs of life, or wait for one on nobody's behalf. Only when
// the server has no such session is anything of it said to be over. It runs in a goroutine of its own until then, or
// until Close.
func (d *Core) bury(c *Conn) {
	for pause := buryFirst; !d.isBuried(c); pause = min(2*pause, buryMost) {
		if !enginekit.Pause(d.base, pause) {
			return
		}
	}
	// Now, and not when the connection broke, nothing of these is left in the server.
	d.mu.Lock()
	defer d.mu.Unlock()
	for e := range c.holds {
		d.drop(e)
	}
}

// isBuried reports whether the server is known to have no such session, and otherwise has it ended, over a shared
// connection.
func (d *Core) isBuried(c *Conn) bool {
	word := make(chan bool, 1)
	d.OnShared(Job{
		Run:  func(shared *Conn) { word <- shared.session.Bury(c) },
		Dead: func(error) { word <- false },
	})
	select {
	case buried := <-word:
		return buried
	case <-d.base.Done():
		return false
	}
}

// How requests end, and how long that is remembered.

// epitaph says how a request has ended. The zero value says that it has not.
type epitaph struct {
	released bool      // by a Release
	torn     bool      // by that or by the end of the session after it; no Release was told
	undone   bool      // by an undo
	until    time.Time // of an undone one: how long copies of it are refused

	reason driver.LostReason // of a hold that was lost; empty otherwise
	cause  error
	token  uint64
}

// is reports whether there is an end at all.
func (p epitaph) is() bool { return p.released || p.undone || p.reason != "" }

// remember records how a request has ended. There is no network between its caller and this table, so no copy of a
// released or lost request is under way for long. The caller holds Core.mu.
func (d *Core) remember(id string, p epitaph) {
	if p.undone {
		d.gone.BuryUntil(id, p.until)
		return
	}
	d.gone.Bury(id, p)
}

// endOf is the answer to a release of something that is not there. The caller holds Core.mu.
func (d *Core) endOf(r *driver.Release) error {
	p, ended := d.gone.Epitaph(r.ID)
	if p.torn { // the first that was told nothing asks again
		return nil
	}
	if !ended || p.reason == "" {
		return gone(r.Key)
	}
	return &driver.LostError{Kind: r.Kind, Name: r.Name, Token: p.token, Reason: p.reason, Cause: p.cause}
}
