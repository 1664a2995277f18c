package interlock

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Owners named by WithOwner that wait for each other by several clients, as the engine lists them. Only such owners are the
// same for everybody. A list is not a picture of one instant, so a cycle counts if two lists have it, with the same tokens and
// the same waits: between the two all of them stood still. Every client that has a part in it finds the same one to tell,
// and the client who waits there tells it.

const (
	// farFirst and farMost are the pauses between looks that found nothing: a list costs the engine more the more it holds.
	farFirst = time.Second
	farMost  = 30 * time.Second
	// farPatience bounds one list.
	farPatience = 10 * time.Second
)

// farSeeker is that search's part of a client. Guarded by Client.mu.
type farSeeker struct {
	at    instant // not before
	first time.Duration
	pause time.Duration
	busy  bool
	seen  twice[farFact] // what the last list had
}

// look has the engine asked if it is time to: first is after how long a wait, or no time if nobody waits who has a name. The
// caller holds Client.mu.
func (f *farSeeker) look(c *Client, now instant, first time.Duration) {
	inspector, can := c.d.(driver.Inspector)
	_, blind := c.traits.Lacking(driver.Waiters)
	switch {
	case first == 0:
		f.pause, f.seen = 0, nil
		return
	case !can || blind || f.busy:
		return
	case f.pause == 0 || first < f.first:
		f.first, f.pause, f.at = first, first, now.plus(first-seekAfter)
		return
	case now < f.at:
		return
	}
	f.first, f.busy = first, true
	c.background.Go(func() { // ends when the engine has answered, or with c.base
		ctx, cancel := context.WithTimeout(c.base, farPatience)
		defer cancel()
		g, err := farPicture(ctx, inspector)
		c.lock()
		defer c.unlockHere()
		f.busy = false
		f.took(c, g, err)
	})
}

// took takes in what a list had. The caller holds Client.mu.
func (f *farSeeker) took(c *Client, g *farGraph, err error) {
	f.pause = min(2*f.pause, farMost)
	if err != nil {
		f.at, f.seen = c.reading().plus(f.pause), nil
		return
	}
	found := g.cycle()
	told := lookedTwice(&f.seen, g, found, farFactOf)
	if len(found) > 0 && !told {
		f.pause = farFirst // look again soon
	}
	f.at = c.reading().plus(f.pause)
	if !told {
		return
	}
	victim := slices.MaxFunc(found, func(a, b farStep) int {
		return cmp.Or(a.what.since.Compare(b.what.since), cmp.Compare(a.what.owner, b.what.owner))
	})
	for w := range c.alone {
		if victim.what.is(w) {
			w.refuse(&deadlockError{key: victim.what.key, cycle: describeFar(found, victim)})
		}
	}
}

// is reports whether w is this wait. The caller holds Client.mu.
func (f farWait) is(w *waiter) bool {
	o, m := w.lease.owner, w.lease.m
	return o.named && o.id == f.owner && m.key == f.key && !w.own.r.Try && w.own.r.Mode != driver.Exclusive == f.shared
}

// describeFar tells the cycle from the victim on.
func describeFar(found []farStep, victim farStep) string {
	return describe(found, victim.wish, func(s farStep) (string, string) {
		how := ", held by owner "
		if s.next.what.ahead {
			how = ", behind owner "
		}
		return s.what.owner, waitsFor(s.what.key, s.what.shared) + how + s.next.what.owner
	})
}
