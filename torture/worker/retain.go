package worker

import (
	"context"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/torture/history"
)

// mostPairs is how many holds one burst is at most.
const mostPairs = 24

// burst takes and releases a mutex several times in a row. The client retains it between the holds, and in the pause
// after the last one, in which others recall it.
func (w *worker) burst(ctx context.Context, name string) {
	// each process has a lock that it wants more often than others, as is what retention is for
	if w.dice.IntN(2) == 0 {
		name = w.j.Names[w.j.Proc%len(w.j.Names)]
	}
	m := w.locks.Mutex(name, &interlock.LockOptions{Retain: w.j.Retain})
	for i := range 1 + w.dice.IntN(mostPairs) {
		if i > 0 {
			w.seq++ // each hold has a number of its own
		}
		if ctx.Err() != nil || !w.pair(ctx, m, name) {
			break
		}
	}
	enginekit.Pause(ctx, time.Duration(w.dice.Int64N(int64(w.j.Lease/2))))
}

// pair is one hold of a burst. It reports false if there was none, or if another process wants the lock.
func (w *worker) pair(ctx context.Context, m *interlock.Mutex, name string) bool {
	a := &attempt{Event: history.Event{Name: name}, lock: m.Lock}
	if w.dice.IntN(4) == 0 {
		a.lock, a.Try = m.TryLock, true
	}
	lease := w.acquire(ctx, a)
	if lease == nil {
		return false
	}
	defer w.watch(lease)()
	how := careful
	if w.dice.IntN(2) == 0 {
		how = careless
	}
	mean := w.j.Hold / 8
	if w.dice.IntN(8) == 0 {
		mean = w.j.Hold
	}
	wanted := w.countUntilWanted(ctx, lease, how, mean)
	w.release(ctx, lease)
	return !wanted
}

// countUntilWanted is count of a holder that gives way: it ends when another process asks for the lock, and reports
// whether one has.
func (w *worker) countUntilWanted(ctx context.Context, lease *interlock.Lease, how manner, mean time.Duration) bool {
	stamp, ok := lease.Stamp()
	if !ok {
		return false
	}
	rounds, all := w.rounds(mean)
	for range rounds {
		if err := w.countOnce(ctx, lease, stamp, how, all/time.Duration(rounds)); err != nil && how == careful {
			return false
		}
		select {
		case <-lease.Wanted():
			w.write(lease, history.Wanted, history.OK, nil)
			return true
		default:
		}
	}
	return false
}
