package sim

import (
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
)

// work is what happens under the lock, until it is done or the loss of the lock is noticed.
func (k *worker) work(l *interlock.Lease, m *interlock.Mutex, s fence.Stamp, named bool, opts *interlock.LockOptions) {
	if named {
		k.w.counts.hit("named owner")
	}
	if opts != nil && opts.NoRenew && k.chance(0.5) || k.chance(0.04) {
		k.stay(l)
		return
	}
	for range 1 + k.rng.IntN(3) {
		if !k.pass(between(k.rng, time.Millisecond, 60*time.Millisecond)) || !k.holds(l) {
			return
		}
		switch {
		case k.chance(0.08):
			k.reenter(l, m)
		case k.chance(0.05):
			k.extend(l)
		case !named: // workers of one named owner are not kept from each other
			if !k.increment(l, s) {
				return
			}
		}
	}
}

// stay keeps the lock until it is lost, or for longer than any lease.
func (k *worker) stay(l *interlock.Lease) {
	timer := time.NewTimer(between(k.rng, time.Second, 5*time.Second))
	defer timer.Stop()
	select {
	case <-l.Lost():
		if k.f.crashed.Load() {
			return
		}
		k.w.counts.hit("told of a loss at work")
		k.lost(l)
	case <-timer.C:
	case <-k.f.ctx.Done():
	}
	k.pass(between(k.rng, 1, 20*time.Millisecond))
}

// holds reports whether the worker may go on.
func (k *worker) holds(l *interlock.Lease) bool {
	if l.Err() == nil {
		return true
	}
	k.lost(l)
	return false
}

// lost judges that a hold has ended although it was not unlocked.
func (k *worker) lost(l *interlock.Lease) {
	if !k.inside {
		return
	}
	k.w.beliefs.left(l)
	if !k.w.conf.faults && !k.fixed {
		k.w.violate(steady, "%s: %v without a fault", l.Name(), l.Err())
	}
}

// increment reads the resource, computes and writes. Between the last look at the lock and the effect there is time,
// which is what fences are for. It reports false if the worker has to stop.
func (k *worker) increment(l *interlock.Lease, s fence.Stamp) bool {
	r := k.w.resources[l.Name()]
	k.travel()
	fenced, bare := r.read(s)
	k.travel()
	if !k.pass(between(k.rng, time.Millisecond, 30*time.Millisecond)) || !k.holds(l) {
		return false
	}
	if !k.pass(between(k.rng, 1, 30*time.Millisecond)) {
		return false
	}
	if fenced >= 0 {
		fenced++
	}
	return k.write(func() { r.write(s, fenced, bare+1) })
}

// travel is a message to or from the resource. It arrives although its sender has died meanwhile.
func (k *worker) travel() {
	time.Sleep(k.w.weather.delay(k.rng)) // virtual
}

// write sends a write, and reports false if there was no word of it in time. It may arrive much later, when the lock
// is another's: the case that no look at the lock can prevent.
func (k *worker) write(do func()) bool {
	delay := k.w.weather.delay(k.rng)
	if k.w.conf.faults && k.chance(0.03) {
		delay += between(k.rng, 100*time.Millisecond, 2*time.Second)
	}
	arrived := make(chan struct{})
	time.AfterFunc(delay, func() { do(); close(arrived) })
	timer := time.NewTimer(409 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-arrived:
		k.travel()
		return true
	case <-timer.C:
		k.w.counts.hit("write without an answer")
		return false
	}
}

// reenter takes the lock once more and gives the two holds back in any order.
func (k *worker) reenter(l *interlock.Lease, m *interlock.Mutex) {
	ctx, cancel, end := k.patience(20*time.Millisecond, 2*time.Second)
	defer cancel()
	inner, err := m.Lock(l.Context(ctx))
	k.returned("re-entry", l.Name(), err, end)
	if err != nil {
		return
	}
	k.w.counts.hit("re-entry")
	// A named owner re-enters through the engine. If an operator has broken the lock and the word of it is still on
	// its way, that is a new acquisition.
	if inner.Token() != l.Token() && !k.w.truth.isBroken(l.Name(), l.Token()) {
		k.w.violate(tokens, "%s: token %d became %d by re-entry", l.Name(), l.Token(), inner.Token())
	}
	if k.pass(between(k.rng, time.Millisecond, 40*time.Millisecond)) {
		k.unlock(inner)
	}
}

// extend asks for more time.
func (k *worker) extend(l *interlock.Lease) {
	d := between(k.rng, 100*time.Millisecond, longestLease)
	ctx, cancel, end := k.patience(20*time.Millisecond, time.Second)
	defer cancel()
	asked := time.Now()
	err := l.Extend(ctx, d)
	k.w.within("Extend", end)
	if err != nil {
		return // MaxHold may end earlier, the lock may be lost, or there was no answer
	}
	k.w.counts.hit("extension")
	if left := l.Deadline(); l.Err() == nil && left.Before(asked.Add(d)) {
		k.w.violate(belief, "%s: extended by %v, and trusted for %v", l.Name(), d, left.Sub(asked))
	}
}
