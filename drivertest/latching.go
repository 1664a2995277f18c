package drivertest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The promise of latching: a latch counts each call once, however often it is repeated, and comes to zero once a round.

func latching() []behaviour {
	able := func(sentence string, run func(*trial)) behaviour {
		return behaviour{sentence: sentence, run: run, about: driver.Ability(driver.KindLatch), wants: latches}
	}
	return []behaviour{
		able("a latch counts down to zero, and no further", latchCountsDown),
		able("a latch that counts is not set, and one at zero is set again", latchIsSetOnceARound),
		able("a latch that nobody has set is at zero", latchThatNobodyHasSet),
		able("of many who set a latch at once one does", manySetALatch),
		able("of many count-downs each counts once", manyCountDown),
		able("a repeated set and a repeated count-down are told the same and do nothing", repeatedLatchCalls),
		able("a count-down of an earlier round, repeated late, does not count", countDownOfAnEarlierRound),
		able("a latch stays when who has set it is gone", latchOutlivesItsSetter),
		able("latches do not touch each other, nor the locks of their names", latchesDoNotTouchEachOther),
		able("a call whose context has ended is not made, or can be repeated", latchCallWithEndedContext),
		{
			sentence: "a watch tells of zero, for each round", run: watchTellsOfZero,
			about: driver.Ability(driver.KindLatch), wants: watchesLatches,
		},
	}
}

// latch is the behaviour's latch as one client uses it.
type latch struct {
	*client
	key driver.Key
}

// latch returns the behaviour's latch for c.
func (c *client) latch() latch {
	c.tr.Helper()
	if _, can := c.d.(driver.Latcher); !can {
		c.tr.Fatalf("Traits names the kind %s, and the driver has no SetLatch, CountDown and LatchCount",
			driver.KindLatch)
	}
	return latch{c, c.tr.key(driver.KindLatch)}
}

// call returns a change with an ID of its own.
func (l latch) call(n int64) *driver.LatchCall {
	return &driver.LatchCall{Key: l.key, ID: freshName(), Count: n, Horizon: longLease}
}

// set fails unless setting the latch says want.
func (l latch) set(c *driver.LatchCall, want bool, when string) {
	l.tr.Helper()
	says(l, want, when+": a set", func(ctx context.Context, d driver.Latcher) (bool, error) {
		return d.SetLatch(ctx, c)
	})
}

// down fails unless counting down leaves want.
func (l latch) down(c *driver.LatchCall, want int64, when string) {
	l.tr.Helper()
	says(l, want, when+": a count-down", func(ctx context.Context, d driver.Latcher) (int64, error) {
		return d.CountDown(ctx, c)
	})
}

// counts fails unless the count is want.
func (l latch) counts(want int64, when string) {
	l.tr.Helper()
	says(l, want, when+": the count", func(ctx context.Context, d driver.Latcher) (int64, error) {
		return d.LatchCount(ctx, l.key)
	})
}

// says makes a call and fails unless its answer is want.
func says[T comparable](l latch, want T, what string, call func(ctx context.Context, d driver.Latcher) (T, error)) {
	l.tr.Helper()
	ctx, cancel := l.tr.bound()
	defer cancel()
	got, err := call(ctx, l.d.(driver.Latcher))
	l.tr.must(err, what)
	if got != want {
		l.tr.Fatalf("%s says %v, want %v", what, got, want)
	}
}

// Below zero it must not go.
func latchCountsDown(tr *trial) {
	a, b := tr.client().latch(), tr.client().latch()
	a.set(a.call(3), true, "at first")
	b.counts(3, "after it was set")
	for left := int64(2); left >= 0; left-- {
		b.down(b.call(0), left, "on the way down")
		a.counts(left, "on the way down")
	}
	a.down(a.call(0), 0, "at zero")
	b.counts(0, "at zero")
}

// Of two sets in one round the second is refused and changes nothing.
func latchIsSetOnceARound(tr *trial) {
	a, b := tr.client().latch(), tr.client().latch()
	for round := range int64(3) {
		a.set(a.call(round+1), true, "at zero")
		b.set(b.call(7), false, "while it counts")
		a.counts(round+1, "after a set that was refused")
		for left := round; left >= 0; left-- {
			b.down(b.call(0), left, "on the way down")
		}
	}
}

// A latch that was never set, and one that was forgotten at zero, are the same to a caller.
func latchThatNobodyHasSet(tr *trial) {
	a := tr.client().latch()
	a.counts(0, "before it was set")
	a.down(a.call(0), 0, "before it was set")
	a.counts(0, "after a count-down of a latch that nobody has set")
	a.set(a.call(1), true, "after that")
	a.counts(1, "after it was set")
}

// together calls f for n clients at once and returns their answers.
func together[T any](tr *trial, n int, f func(l latch) (T, error)) []T {
	tr.Helper()
	said, errs := make([]T, n), make([]error, n)
	var all sync.WaitGroup
	for i := range n {
		l := tr.client().latch()
		all.Go(func() { said[i], errs[i] = f(l) })
	}
	all.Wait()
	tr.must(errors.Join(errs...), "calls of many clients at once")
	return said
}

// One of them has set it, and the others must know that they have not.
func manySetALatch(tr *trial) {
	sets := 0
	for _, set := range together(tr, 8, func(l latch) (bool, error) {
		ctx, cancel := tr.bound()
		defer cancel()
		return l.d.(driver.Latcher).SetLatch(ctx, l.call(5))
	}) {
		if set {
			sets++
		}
	}
	if sets != 1 {
		tr.Errorf("%d of 8 were told that they have set the latch, want 1", sets)
	}
	tr.client().latch().counts(5, "after all have set it")
}

// Each count-down must have an answer of its own, or one of them was lost.
func manyCountDown(tr *trial) {
	a := tr.client().latch()
	a.set(a.call(9), true, "at first")
	seen := make(map[int64]int)
	for _, left := range together(tr, 8, func(l latch) (int64, error) {
		ctx, cancel := tr.bound()
		defer cancel()
		return l.d.(driver.Latcher).CountDown(ctx, l.call(0))
	}) {
		seen[left]++
	}
	for left := int64(1); left <= 8; left++ {
		if seen[left] != 1 {
			tr.Errorf("%d of 8 count-downs at once left %d, want 1", seen[left], left)
		}
	}
	a.counts(1, "after 8 of 9 count-downs")
}

// Every kind of call is repeated, also after the count has come to zero.
func repeatedLatchCalls(tr *trial) {
	a, b := tr.client().latch(), tr.client().latch()
	set, refused, first, last := a.call(2), b.call(2), a.call(0), b.call(0)
	a.set(set, true, "at first")
	a.set(set, true, "repeated")
	b.set(refused, false, "while it counts")
	a.down(first, 1, "the first")
	for range 3 {
		a.down(first, 1, "the first, repeated")
	}
	b.counts(1, "after a repeated count-down")
	b.down(last, 0, "the last")
	b.down(last, 0, "the last, repeated")
	a.down(first, 1, "the first, repeated at zero")
	b.set(refused, false, "a refused set, repeated at zero")
	a.set(set, true, "a set, repeated at zero")
	b.counts(0, "in the end")
}

// A late copy of an earlier round must not count in the next one.
func countDownOfAnEarlierRound(tr *trial) {
	a, b := tr.client().latch(), tr.client().latch()
	set, down, idle := a.call(1), b.call(0), b.call(0)
	a.set(set, true, "the first round")
	b.down(down, 0, "the first round")
	b.down(idle, 0, "between the rounds")
	a.set(a.call(5), true, "the second round")
	b.down(down, 0, "of the first round, repeated in the second")
	b.down(idle, 0, "between the rounds, repeated in the second")
	a.set(set, true, "the first round's, repeated in the second")
	a.counts(5, "after what came late")
}

// A latch is not a hold: it does not go with the client that has set it.
func latchOutlivesItsSetter(tr *trial) {
	setter := tr.h.Open(tr.Context(), tr.t)
	l := tr.over(setter, "the setter").latch()
	l.set(l.call(2), true, "at first")
	tr.must(setter.Close(), "Close")
	tr.pass(2 * tr.h.Lease)
	b := tr.client().latch()
	b.counts(2, "after its setter is gone")
	b.down(b.call(0), 1, "after its setter is gone")
}

// Neither another latch, nor an ID that was used on another latch, nor a lock of the same name counts.
func latchesDoNotTouchEachOther(tr *trial) {
	c := tr.client()
	a, b := c.latch(), c.latch()
	b.key.Name += "-other"
	a.set(a.call(2), true, "at first")
	b.counts(0, "while another latch counts")
	once := b.call(0)
	b.set(b.call(2), true, "beside another")
	b.down(once, 1, "beside another")
	same := *once
	same.Key = a.key
	a.down(&same, 1, "by an ID that has counted on another latch")
	c.findsFree(tr.mutex(), "while a latch of its name counts")
}

// The outcome is open, and the repetition must count once.
func latchCallWithEndedContext(tr *trial) {
	a, b := tr.client().latch(), tr.client().latch()
	a.set(a.call(3), true, "at first")
	ctx, cancel := context.WithCancel(tr.Context())
	cancel()
	down := a.call(0)
	start := time.Now()
	_, err := a.d.(driver.Latcher).CountDown(ctx, down)
	if err == nil || time.Since(start) > prompt {
		tr.Fatalf("a count-down whose context had ended says %q after %v", text(err), time.Since(start))
	}
	a.down(down, 2, "repeated with a context that lasts")
	b.counts(2, "after that")
}

// Only zero must be told, once for each round.
func watchTellsOfZero(tr *trial) {
	a, b := tr.client().latch(), tr.client()
	for round := range 3 {
		a.set(a.call(2), true, fmt.Sprintf("in round %d", round))
		w := b.watch(a.key)
		a.down(a.call(0), 1, "on the way down")
		w.quiet()
		a.down(a.call(0), 0, "at last")
		w.tells("of zero")
		w.ends()
	}
}
