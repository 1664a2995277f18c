package sim

import (
	"context"
	"errors"
	"math/rand/v2"
	"strconv"
	"time"

	"github.com/interlock-go/interlock"
)

// worker takes locks and works under them, over and over. After each call it lets some time pass before it does
// anything that others could notice.
type worker struct {
	f    *life
	w    *world
	name string
	rng  *rand.Rand

	inside bool // the present hold was trusted when it was given
	fixed  bool // it ends by itself
}

// run is the worker's goroutine. It ends with the life, or when the run is wound up.
func (k *worker) run() {
	for k.pass(between(k.rng, time.Millisecond, 150*time.Millisecond)) && !k.w.windingUp() {
		k.turn()
	}
}

// pass lets d pass, and more if the process stands still by then. It reports whether the process still lives.
func (k *worker) pass(d time.Duration) bool {
	for d > 0 {
		timer := time.NewTimer(d)
		select {
		case <-timer.C:
		case <-k.f.ctx.Done():
			timer.Stop()
			return false
		}
		_, frozen, _ := k.f.link.state(nil)
		if d = frozen; d > 0 {
			k.w.counts.hit("frozen worker")
			d += between(k.rng, 1, 5*time.Millisecond)
		}
	}
	return true
}

// chance draws a yes with probability p.
func (k *worker) chance(p float64) bool { return k.rng.Float64() < p }

// patience returns a context for a call and when it ends: by its deadline, or because it is cancelled. It ends with the
// process too.
func (k *worker) patience(least, most time.Duration) (context.Context, context.CancelFunc, time.Time) {
	d := between(k.rng, least, most)
	if k.chance(0.5) {
		ctx, cancel := context.WithTimeout(k.f.ctx, d)
		return ctx, cancel, time.Now().Add(d)
	}
	ctx, cancel := context.WithCancel(k.f.ctx)
	time.AfterFunc(d, cancel)
	return ctx, cancel, time.Now().Add(d)
}

// turn takes a lock, works and gives it back.
func (k *worker) turn() {
	name := names[k.rng.IntN(len(names))]
	opts := k.options()
	k.fixed = opts != nil && (opts.NoRenew || opts.MaxHold > 0)
	m := k.f.client.Mutex(name, opts)
	most := 4 * time.Second
	if k.chance(0.2) {
		most = 60 * time.Millisecond
	}
	ctx, cancel, end := k.patience(5*time.Millisecond, most)
	defer cancel()
	named := k.chance(0.12)
	if named {
		// a name is one owner for all runs beside this one
		ctx = interlock.WithOwner(ctx, "job "+strconv.Itoa(k.rng.IntN(2))+" of "+k.w.id)
	}
	lock, what := m.Lock, "lock"
	if k.chance(0.2) {
		lock, what = m.TryLock, "trylock"
	}
	mark := k.w.order.mark(name)
	l, err := lock(ctx)
	k.returned(what, name, err, end)
	if err != nil {
		return
	}
	k.inside = k.w.beliefs.entered(l, k.f.p.number)
	if s, ok := l.Stamp(); ok {
		k.w.order.given(name, s, mark)
		k.work(l, m, s, named, opts)
	}
	k.unlock(l)
}

// options draws the options of a lock. Most workers use the usual ones, so that they queue together and pass on
// locally.
func (k *worker) options() *interlock.LockOptions {
	switch n := k.rng.IntN(20); {
	case n < 2:
		return &interlock.LockOptions{Lease: longestLease, Renewal: longestRenewal}
	case n < 4:
		return &interlock.LockOptions{Lease: shortLease, NoRenew: true}
	case n < 5:
		return &interlock.LockOptions{MaxHold: 701 * time.Millisecond}
	}
	return nil
}

// unlock gives a hold back, in whatever mood.
func (k *worker) unlock(l *interlock.Lease) {
	if k.f.ctx.Err() != nil {
		return // the process has died
	}
	ctx, cancel, end := k.patience(time.Millisecond, 2*time.Second)
	defer cancel()
	if k.chance(0.1) {
		cancel()
		end = time.Now()
		k.w.counts.hit("unlock with an ended context")
	}
	err := l.Unlock(ctx)
	if errors.Is(err, interlock.ErrUnavailable) {
		k.w.counts.hit("unlock without an answer")
	}
	if errors.Is(l.Err(), interlock.ErrLost) { // and not only its release, of which a copy may have come first
		k.lost(l)
	}
	k.returned("unlock", l.Name(), err, end)
	k.pass(between(k.rng, 1, time.Millisecond))
}

// returned judges what a call said, and when. What a crashed process hears is nobody's business.
func (k *worker) returned(what, name string, err error, end time.Time) {
	if k.f.crashed.Load() {
		return
	}
	k.w.within(what, end)
	outcome := outcomeOf(err)
	if outcome == "" {
		k.w.violate(errorful, "%s: %v", what, err)
	}
	k.w.note(k.name, what, name, outcome)
	k.w.counts.hit(what + ": " + outcome)
}

// outcomeOf names an error that a call may return; it is empty for others.
func outcomeOf(err error) string {
	switch {
	case err == nil:
		return "done"
	case errors.Is(err, interlock.ErrHeld):
		return "held"
	case errors.Is(err, interlock.ErrUnavailable):
		return "unavailable"
	case errors.Is(err, interlock.ErrLost):
		return "lost"
	case errors.Is(err, interlock.ErrReleased):
		return "released"
	case errors.Is(err, interlock.ErrClosed):
		return "closed"
	}
	return ""
}

// lossOf returns the reason of a loss.
func lossOf(err error) interlock.LostReason {
	var lost *interlock.LostError
	if errors.As(err, &lost) {
		return lost.Reason
	}
	return ""
}
