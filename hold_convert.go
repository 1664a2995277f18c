package interlock

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
)

// How a hold turns into one of another mode (Upgrade, Downgrade). The engine grants the other mode beside what the hold
// has, so that nobody gets in between, and the hold moves there. From then on its token, trust and end are those of the
// new grant.
//
// A downgrade gives back what the hold had. An upgrade keeps it, because a downgrade returns to it: another lease, the
// inner one of an upgrade pair (core_convert.go), holds the upgradeable read meanwhile. Both are lost and released
// together. docs/adr/0021 has the decision.

// Upgrade turns an upgradeable read into the write, ahead of all waiters. No other writer gets in between, so
// what was read is still true. Upgrade waits until the other readers have left, and keeps new ones out meanwhile. The
// hold gets a new token and nonce, and so do all holds that its owner has on this lock.
//
// ctx bounds the waiting. When it ends first the error is as for [Mutex.Lock], and the upgradeable read is held as
// before. So it is after every other error that does not match ErrLost. If the engine did not answer (ErrUnavailable)
// the write may have been granted. It is given back in the background, and Upgrade may be called again. If the hold is
// lost while it waits, Upgrade returns the *LostError; if it is unlocked, ErrReleased.
//
// A plain read gets ErrDeadlock, because two readers that both want to write would wait for each other. ErrConflict is
// returned for a hold that already writes, and for a second Upgrade while the first one waits. Other locks have no
// modes: ErrUnsupported.
//
// It costs one round trip, and one message when it has to wait. The hold has two leases in the engine until it is
// downgraded or unlocked.
func (l *Lease) Upgrade(ctx context.Context) error {
	if err := checkCall(l.checkMade(), ctx); err != nil {
		return err
	}
	c, at := l.m.client(), l.m.client().newCall()
	bound, bounded := boundWait(ctx, l.m.p.wait)
	err := bound.end("upgrade", l.m.key(), l.upgrade(bounded, at))
	e := l.eventNow()
	at.end(&e)
	e.Waited, e.Local, e.Err = c.reading().Since(at.start), false, err
	if err != nil {
		c.tellFailed(ctx, e)
		return err
	}
	if upgraded := c.opts.Observer.Upgraded; upgraded != nil {
		upgraded(ctx, e)
	}
	return nil
}

// upgrade is Upgrade without what the Observer is told.
func (l *Lease) upgrade(ctx context.Context, at call) error {
	if err := ctx.Err(); err != nil {
		return wrap("upgrade", l.m.key(), err)
	}
	c := l.m.client()
	c.lock()
	if err := l.mayConvert(driver.Exclusive); err != nil {
		c.unlock()
		return wrap("upgrade", l.m.key(), err)
	}
	w, err := l.askConversion(ctx, driver.Exclusive, at) // gives up Client.mu
	if w.err == nil && w.answered {
		return nil
	}
	return l.named("upgrade", withOperation("upgrade", l.m.key(), err))
}

// Downgrade turns the write into a read, and no writer gets in between. The token stays. A hold that was upgraded has
// the upgradeable read again; any other has a plain read, which cannot be upgraded. When Downgrade has returned nil
// other readers can get in. They stay out if the owner has further holds that write, or had one with a LockDelay that
// was lost, until that is over. A MinHold goes on with the read.
//
// If the engine does not answer, the error matches ErrUnavailable. Then either nothing has changed, or Stamp says
// Shared: the hold reads, and the write is being given back in the background. If it turns out that the write had been
// lost, the hold is lost too, and Downgrade returns the *LostError. ErrConflict is returned for a hold that already
// reads or is being upgraded. Locks without modes get ErrUnsupported, and so do engines that cannot convert, with the
// reason.
//
// It costs one round trip for a hold that was upgraded, and two for any other.
func (l *Lease) Downgrade(ctx context.Context) error {
	if err := checkCall(l.checkMade(), ctx); err != nil {
		return err
	}
	if err := ctx.Err(); err != nil {
		return wrap("downgrade", l.m.key(), err)
	}
	c := l.m.client()
	c.lock()
	if err := l.mayConvert(driver.Shared); err != nil {
		c.unlock()
		return wrap("downgrade", l.m.key(), err)
	}
	var left *pendingRelease
	if l.upgradePair != nil {
		left = l.goBack()
		c.unlock()
	} else {
		w, err := l.askConversion(ctx, driver.Shared, call{start: c.reading()}) // gives up Client.mu
		if w.err != nil || !w.answered {
			return l.named("downgrade", withOperation("downgrade", l.m.key(), err))
		}
		left = w.left
	}
	return l.named("downgrade", withOperation("downgrade", l.m.key(), l.giveLeft(ctx, left)))
}

// askConversion asks for the other mode beside what l has, and blocks until that is answered or ctx ends. If it is
// answered, w.err says how, and l has turned if w.err is nil. The caller holds Client.mu, which askConversion gives up.
func (l *Lease) askConversion(ctx context.Context, mode driver.Mode, at call) (w *waiter, err error) {
	c, m := l.m.client(), &l.m.p.share.of[mode]
	if l.m.p.ownLabel {
		m = m.withLabel(l.m.p.label)
	}
	w = &waiter{lease: &Lease{m: m, owner: l.owner}, call: at, beside: l.g, converts: l}
	listeners := l.listening()
	listeners.conversion = w
	_, err = c.ask(ctx, w, false) // gives up Client.mu
	c.lock()
	defer c.unlock()
	listeners.conversion = nil
	return w, err
}

// giveLeft releases what a downgrade has left, and waits for the engine's confirmation. If the engine says that it was
// lost, the hold is lost as well: another owner may have written meanwhile.
func (l *Lease) giveLeft(ctx context.Context, left *pendingRelease) error {
	if left == nil {
		return nil
	}
	err := left.await(ctx, unlockGrace)
	var lost *LostError
	if !errors.As(err, &lost) {
		return err
	}
	c := l.m.client()
	c.lock()
	defer c.unlock()
	// It has run out meanwhile, because it was renewed no more. An engine that finds no such hold may call it taken,
	// because of the read beside it.
	if !isRemembered(lost) && c.now() >= left.until {
		return nil
	}
	if l.check(c.now()); l.ended() == nil {
		c.loseAndRelease(l.g, lost.Reason)
	}
	return l.ended()
}
