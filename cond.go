package interlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

// Cond is the condition of a mutex, as sync.Cond is that of a sync.Mutex: who holds the mutex can give it up until another
// says that something has changed. Each mutex has one; all Conds of it are the same. It is safe for concurrent use.
//
//	for lease.Err() == nil && !ready() {
//		if lease, err = cond.Wait(ctx, lease); err != nil {
//			return err // nothing is held
//		}
//	}
//
// Ask in a loop, as here: between the signal and the return of Wait another may have had the mutex.
type Cond struct {
	m   *Mutex
	err error // reported by the first call
}

// Cond returns the condition of m, which must be a mutex of this client. It asks no engine; an engine without conditions is
// reported by its first call.
func (c *Client) Cond(m *Mutex) *Cond {
	cond := &Cond{m: m, err: m.p.err}
	reason, lacks := c.traits.LackingKind(driver.KindCond)
	_, can := c.d.(driver.Conder)
	switch {
	case cond.err != nil:
	case m.c != c:
		cond.err = fmt.Errorf("interlock: condition of %q: the mutex is another client's", m.key.Name)
	case lacks:
		cond.err = wrap("condition of", m.key, unsupported(c.traits, reason))
	case !can:
		cond.err = wrap("condition of", m.key, unsupported(c.traits, "its driver is no driver.Conder"))
	}
	return cond
}

// Wait gives l up and waits for a signal, in one step, so that no signal falls in between; then it takes the mutex again and
// returns the new hold, of the same owner and with a larger token. l ends as though it had been unlocked: use the contexts
// of the new hold. A hold that the caller has beside l, by re-entry, is ErrNested; an l that is not a live hold of this mutex
// is ErrNotHeld; both change nothing. After every other error nothing is held.
//
// ctx bounds both waits. When it ends, the error matches its error, and a signal that had come goes on to the next who
// waits. Wait survives broken connections; if the engine has lost its place, it goes on as though a signal had come. It
// costs two round trips and a message, and a round trip a second while it lasts.
func (c *Cond) Wait(ctx context.Context, l *Lease) (*Lease, error) {
	if c.err != nil {
		return nil, c.err
	}
	w, err := c.prepare(l)
	if err != nil {
		return nil, wrap("wait for the condition of", c.m.key, err)
	}
	defer c.m.c.background.Done() // added by prepare
	bounded := call{user: ctx, base: c.m.c.base}
	answer, err := c.m.c.d.(driver.Conder).CondWait(&bounded, w.give, &w.r, w.parked)
	ended := bounded.Err() != nil
	bounded.end()
	if err != nil {
		return nil, w.failed(ctx, err, ended)
	}
	return w.granted(ctx, answer)
}

// condWait is one Wait under way.
type condWait struct {
	c    *Client
	old  *Lease // what is given up
	new  *Lease // what is to come
	g    *grant // of new
	r    driver.Request
	give *driver.Release
	at   instant

	// Guarded by Client.mu.
	gone   bool // old has ended in this process
	waited bool // the engine has said that it waits for a signal
}

// prepare ends l in this process, unless only the engine can say whether it may be given up: then l ends when it has. It
// counts the wait as background.
func (c *Cond) prepare(l *Lease) (*condWait, error) {
	cl := c.m.c
	cl.lock()
	defer cl.unlock()
	if l.m.c != cl || l.m.key != c.m.key {
		return nil, fmt.Errorf("the lease is of %s %q: %w", l.m.key.Kind, l.m.key.Name, ErrNotHeld)
	}
	now := cl.now()
	l.check(now)
	switch err := l.ended(); {
	case err != nil:
		return nil, errors.Join(ErrNotHeld, err)
	case l.hasOthers():
		return nil, ErrNested
	}
	w := &condWait{c: cl, old: l, new: l.m.newLease(l.owner), give: l.g.release(), at: now}
	w.r = l.m.request(cl.newID(), l.owner)
	w.r.Tokens = 1
	w.g = &grant{m: l.m, id: w.r.ID, asked: l.m.p.lease, index: -1}
	w.r.Lost = w.g.lostByEngine
	cl.background.Add(1)
	if !l.owner.named {
		w.giveUp(now)
	}
	return w, nil
}

// hasOthers reports whether l's owner has another live hold of the same lock in this process. The caller holds Client.mu.
func (l *Lease) hasOthers() bool {
	for _, other := range l.owner.snapshot() {
		if other != l && other.m.c == l.m.c && other.m.key == l.m.key && other.ended() == nil {
			return true
		}
	}
	return false
}

// giveUp ends the old hold in this process. The caller holds Client.mu.
func (w *condWait) giveUp(now instant) {
	w.gone = true
	if w.old.ended() == nil {
		w.old.release(now)
		w.old.g.drop()
		w.c.after(func() { w.old.owner.remove(w.old); w.old.tellReleased(nil) })
		return
	}
	w.old.owner.remove(w.old) // it ended while the engine was asked, and nobody will unlock it
}

// parked takes in that the engine has ended the old hold: those who wait for it in this process ask now.
func (w *condWait) parked() {
	w.c.lock()
	defer w.c.unlockHere()
	w.waited = true
	w.giveUp(w.c.now())
	w.c.askFor(w.old.m)
}

// failed has both parts of the wait settled, and says what err means. The outcome of one that ErrNested has refused is
// known.
func (w *condWait) failed(ctx context.Context, err error, ended bool) error {
	key := w.r.Key
	w.c.lock()
	defer w.c.unlock()
	if errors.Is(err, ErrNested) && driver.IsDefinite(err) && !w.gone {
		return wrap("wait for the condition of", key, err)
	}
	w.giveUp(w.c.now())
	w.c.settle(w.give)
	w.g.settle(true)
	w.c.askFor(w.old.m)
	switch {
	case ctx.Err() != nil && !w.waited && errors.Is(err, ErrUnavailable):
		return unavailable("wait for the condition of", key, errors.Join(ctx.Err(), err))
	case ctx.Err() != nil:
		return wrap("wait for the condition of", key, ctx.Err())
	case ended || w.c.closed:
		return wrap("wait for the condition of", key, ErrClosed)
	case errors.Is(err, ErrLost) || driver.IsDefinite(err):
		return wrap("wait for the condition of", key, err)
	}
	return unavailable("wait for the condition of", key, err)
}

// granted makes the engine's answer a hold.
func (w *condWait) granted(ctx context.Context, answer driver.Grant) (*Lease, error) {
	c := w.c
	c.lock()
	now := c.now()
	if c.closed || w.g.phase == revoked || w.g.tooLate(answer, now) {
		w.g.settle(true) // so that the signal goes on
		defer c.unlock()
		if c.closed {
			return nil, wrap("wait for the condition of", w.r.Key, ErrClosed)
		}
		return nil, &LostError{Kind: w.r.Kind, Name: w.r.Name, Token: answer.Token, Reason: LostExpired}
	}
	if old := c.passing(w.new.m); old != nil {
		old.alone = true // the engine gave the lock to us, so that one is over although nobody has told us yet
	}
	w.g.taken(answer, now)
	w.g.alone = true // who stands in line here is in the engine's queue already
	w.g.admit(w.new, w.at, now, false)
	c.unlock()
	if told := c.opts.Observer.Acquired; told != nil {
		told(ctx, w.new.eventNow())
	}
	return w.new, nil
}

// Signal wakes the one who has waited for the longest, if anybody waits. The caller need not hold the mutex. See [Latch.Set]
// for repetitions and errors; it costs one round trip.
func (c *Cond) Signal(ctx context.Context) error { return c.signal(ctx, "signal", false) }

// Broadcast wakes everybody who waits; they get the mutex one after the other. Otherwise it is like Signal.
func (c *Cond) Broadcast(ctx context.Context) error { return c.signal(ctx, "broadcast", true) }

func (c *Cond) signal(ctx context.Context, op string, all bool) error {
	if c.err != nil {
		return c.err
	}
	cl := c.m.c
	s := &driver.Signal{Key: c.m.key, ID: cl.newID(), All: all, Horizon: 2 * cl.opts.Lease}
	return cl.persist(ctx, op, c.m.key, func(ctx context.Context) error { return cl.d.(driver.Conder).CondSignal(ctx, s) })
}
