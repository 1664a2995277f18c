package drivertest

import (
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/interlock-go/interlock/driver"
)

// The promise of recalls: a holder is told that another wants its lock, and one that keeps a lock without an owner
// gives way. retaining.go has the part about renewals.

func recalling() []behaviour {
	told := func(sentence string, run func(*trial)) behaviour {
		return behaviour{sentence: sentence, run: run, needs: needing(driver.Recalls)}
	}
	leader := told("a leader that retains is told when another campaigns", func(tr *trial) {
		tr.isToldOfAWait(driver.KindElection)
	})
	leader.kinds = []driver.Kind{driver.KindElection}
	writer := told("a writer that retains is told when a reader waits", writerIsTold)
	writer.kinds = []driver.Kind{driver.KindRWMutex}
	several := told("a holder that retains is told when several locks are asked for at once", toldOfSeveral)
	several.wants = bundles
	again := told("a hold that a requeue was granted is told as well", toldAfterARequeue)
	again.wants = requeues
	return append([]behaviour{
		told("a holder that retains is told when another waits, who is told that it does", toldOfAWait),
		told("a holder that retains is told when a try is refused, which says that it does", toldOfATry),
		told("a hold with which nothing is retained is refused as such", refusalByAPlainHold),
		told("a hold that came after a wait is told as well", toldAfterAWait),
		told("who has released is not told that the lock of the next holder is wanted", notToldAfterTheRelease),
		leader, writer, several, again,
	}, retaining()...)
}

// listener counts how often a holder was told that another wants its lock.
type listener struct {
	tr   *trial
	told atomic.Int64
}

// listening is ask by a client that wants to know whether another wants the lock.
func (c *client) listening(key driver.Key) (*driver.Request, *listener) {
	l := &listener{tr: c.tr}
	r := c.ask(key)
	r.Wanted = func() { l.told.Add(1) }
	return r, l
}

// retaining is listening by a client that may keep the lock when its owner has ended the hold.
func (c *client) retaining(key driver.Key) (*driver.Request, *listener) {
	r, l := c.listening(key)
	r.Retains = true
	return r, l
}

// isTold fails unless the holder is told more often than before.
func (l *listener) isTold(before int64, when string) {
	l.tr.Helper()
	l.tr.until(when+": the holder is told that another wants the lock", func() error {
		if n := l.told.Load(); n <= before {
			return fmt.Errorf("it was called %d times, and %d times before", n, before)
		}
		return nil
	})
}

// isToldNothing fails if the holder was told, or is told within settle.
func (l *listener) isToldNothing(when string) {
	l.tr.Helper()
	l.tr.pass(settle)
	if n := l.told.Load(); n > 0 {
		l.tr.Fatalf("%s: Wanted was called %d times", when, n)
	}
}

// refusedBy returns the error with which a try of key is refused.
func (c *client) refusedBy(key driver.Key, when string) *driver.HeldError {
	c.tr.Helper()
	h, err := c.try(key)
	if err == nil {
		h.abandon()
		c.tr.Fatalf("%s: a try of %s %q was granted, and must be refused", when, key.Kind, key.Name)
	}
	var held *driver.HeldError
	if !errors.As(err, &held) {
		c.tr.Fatalf("%s: a try says %q, want a *HeldError", when, text(err))
	}
	return held
}

// The waiter is told as well that the holder may give way.
func toldOfAWait(tr *trial) { tr.isToldOfAWait(driver.KindMutex) }

// isToldOfAWait is toldOfAWait for a lock of that kind.
func (tr *trial) isToldOfAWait(kind driver.Kind) {
	tr.Helper()
	a, b := tr.client(), tr.client()
	r, l := a.retaining(tr.key(kind))
	h := a.take(r)
	l.isToldNothing("while nobody asks")
	w := b.start(b.ask(tr.key(kind)))
	if held := w.isWaiting(); held == nil || !held.Retains {
		tr.Errorf("who waits was told %+v, want one that says Retains", held)
	}
	l.isTold(0, "while another waits")
	h.release()
	w.granted("after the release").release()
}

// writerIsTold is about waits for a shared mode, which engines may store elsewhere.
func writerIsTold(tr *trial) {
	a, b := tr.client(), tr.client()
	r, l := a.retaining(tr.key(driver.KindRWMutex))
	h := a.take(r)
	w := b.queue(b.reader())
	l.isTold(0, "while a reader waits")
	h.release()
	w.granted("after the release").release()
}

// A try queues nothing, so the message must come with its refusal.
func toldOfATry(tr *trial) {
	a, b := tr.client(), tr.client()
	r, l := a.retaining(tr.mutex())
	h := a.take(r)
	if held := b.refusedBy(tr.mutex(), "while it is held"); !held.Retains {
		tr.Errorf("the refusal is %+v, want one that says Retains", *held)
	}
	l.isTold(0, "after a try")
	h.release()
	b.findsFree(tr.mutex(), "after the release")
}

// refusalByAPlainHold is about what a try goes by that waits for a lock to come back: without retention it would wait
// in vain.
func refusalByAPlainHold(tr *trial) {
	a, b := tr.client(), tr.client()
	r, _ := a.listening(tr.mutex())
	h := a.take(r)
	if held := b.refusedBy(tr.mutex(), "while it is held"); held.Retains {
		tr.Errorf("the refusal is %+v, and nothing is retained", *held)
	}
	w := b.start(b.ask(tr.mutex()))
	if held := w.isWaiting(); held != nil && held.Retains {
		tr.Errorf("who waits was told %+v, and nothing is retained", *held)
	}
	h.release()
	w.granted("after the release").release()
}

// toldAfterAWait is about engines that grant to a waiter in another way than to a request that finds the lock free.
func toldAfterAWait(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	first := a.take(a.ask(tr.mutex()))
	r, l := b.retaining(tr.mutex())
	w := b.queue(r)
	first.release()
	second := w.granted("after the release")
	before := l.told.Load()
	next := c.queue(c.ask(tr.mutex()))
	l.isTold(before, "while a further one waits")
	second.release()
	next.granted("after the second release").release()
}

// notToldAfterTheRelease has nobody ask while the first one holds, so that no message to it can be a late one.
func notToldAfterTheRelease(tr *trial) {
	a, b, c := tr.client(), tr.client(), tr.client()
	r, first := a.retaining(tr.mutex())
	a.take(r).release()
	r, second := b.retaining(tr.mutex())
	h := b.take(r)
	w := c.queue(c.ask(tr.mutex()))
	second.isTold(0, "while another waits")
	first.isToldNothing("after its release")
	h.release()
	w.granted("after the release").release()
}

// A step that asks for several locks is refused because of one, whose holder must be told.
func toldOfSeveral(tr *trial) {
	a, b := tr.client(), tr.client()
	keys := tr.several()
	r, l := a.retaining(keys[len(keys)-1])
	h := a.take(r)
	_, err := b.acquireAll(b.askAll(keys))
	tr.mustMatch(err, driver.ErrHeld, "several locks of which one is held")
	l.isTold(0, "after the refusal")
	h.release()
}

// The hold that a requeue was granted has a Wanted of its own.
func toldAfterARequeue(tr *trial) {
	a, b := tr.client(), tr.client()
	first := a.take(a.ask(tr.mutex()))
	r, l := a.retaining(tr.mutex())
	second := first.mustRequeue(r, "while nobody waits")
	w := b.queue(b.ask(tr.mutex()))
	l.isTold(0, "while another waits")
	second.release()
	w.granted("after the release").release()
}
