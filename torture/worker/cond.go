package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
)

// Conditional is the mutex with a condition for which goroutines of all processes wait.
const Conditional = "conditional"

// waitAndSignal has one or two others wait for the condition, and signals as often: those or whoever else waits, in
// this process and in others.
func (w *worker) waitAndSignal(ctx context.Context) {
	var waiting sync.WaitGroup
	waits := 1 + w.dice.IntN(2)
	for range waits {
		part := *w
		part.dice = rand.New(rand.NewPCG(w.dice.Uint64(), 0))
		w.seq += 2 // a hold before the wait, and one after it
		waiting.Go(func() { part.withOwnRegister(ctx, part.awaitSignal) })
	}
	for range waits {
		// mostly they have the mutex before this does
		enginekit.Pause(ctx, time.Duration(w.dice.Int64N(int64(2*w.j.Hold)+1)))
		w.seq++
		w.signal(ctx)
	}
	waiting.Wait()
}

// awaitSignal holds the mutex, gives it up until there is a signal, and holds it anew.
func (w *worker) awaitSignal(ctx context.Context) {
	m := w.locks.Mutex(Conditional, nil)
	old := w.acquire(ctx, &attempt{Event: history.Event{Name: Conditional}, lock: m.Lock})
	if old == nil {
		return
	}
	w.announce(register.Releases)
	w.write(old, history.Release, history.Call, nil)
	w.seq++
	e := history.Event{
		Proc: w.j.Proc, Gor: w.gor, Seq: w.seq, Op: history.Wait, Phase: history.Call, Name: Conditional,
		Token: old.Token(),
	}
	w.log.Write(e)
	wait, cancel := w.until(ctx, w.j.Lease+time.Duration(w.dice.Int64N(int64(3*w.j.Lease))))
	begun := time.Now()
	lease, err := w.locks.Cond(m).Wait(wait, old)
	e.Took, e.Late = time.Since(begun), wait.late()
	cancel()
	w.answered(ctx, &e, lease, err)
	if err != nil {
		return
	}
	defer w.watch(lease)()
	w.stay(ctx, w.j.Hold/4, []*interlock.Lease{lease}, []*worker{w})
	w.release(ctx, lease)
}

// signal signals under the mutex, so that it is known who waits by then. One in eight is for all.
func (w *worker) signal(ctx context.Context) {
	m := w.locks.Mutex(Conditional, nil)
	lease := w.acquire(ctx, &attempt{Event: history.Event{Name: Conditional}, lock: m.Lock})
	if lease == nil {
		return
	}
	defer w.watch(lease)()
	cond := w.locks.Cond(m)
	op, do := history.Signal, cond.Signal
	if w.dice.IntN(8) == 0 {
		op, do = history.Broadcast, cond.Broadcast
	}
	w.write(lease, op, history.Call, nil)
	patient, cancel := context.WithTimeout(ctx, w.j.Patience)
	defer cancel()
	err := do(patient)
	phase := history.OK
	// of a hold that was lost, who waited by then is not known
	if err != nil || errors.Is(lease.Err(), interlock.ErrLost) {
		phase = history.Unknown
	}
	w.write(lease, op, phase, err)
	w.release(ctx, lease)
}
