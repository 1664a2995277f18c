package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/torture/history"
)

// Conditional is the mutex with a condition for which goroutines of all processes wait.
const Conditional = "conditional"

// waitAndSignal has one or two others wait for the condition, and signals as often: those or whoever else waits, in this process
// and in others.
func (h *hand) waitAndSignal(ctx context.Context) {
	var waiting sync.WaitGroup
	waits := 1 + h.dice.IntN(2)
	for range waits {
		part := *h
		part.dice = rand.New(rand.NewPCG(h.dice.Uint64(), 0))
		h.seq += 2 // a hold before the wait, and one after it
		waiting.Go(func() { part.withOwnRegister(ctx, part.awaitSignal) })
	}
	for range waits {
		pause(ctx, time.Duration(h.dice.Int64N(int64(2*h.j.Hold)+1))) // mostly they have the mutex before this does
		h.seq++
		h.signal(ctx)
	}
	waiting.Wait()
}

// awaitSignal holds the mutex, gives it up until there is a signal, and holds it anew.
func (h *hand) awaitSignal(ctx context.Context) {
	m := h.locks.Mutex(Conditional, nil)
	old := h.acquire(ctx, &attempt{Event: history.Event{Name: Conditional}, lock: m.Lock})
	if old == nil {
		return
	}
	h.write(old, history.Release, history.Call, nil)
	h.seq++
	e := history.Event{
		Proc: h.j.Proc, Gor: h.gor, Seq: h.seq, Op: history.Wait, Phase: history.Call, Name: Conditional, Token: old.Token(),
	}
	h.log.Write(e)
	wait, cancel := within(ctx, h.j.Lease+time.Duration(h.dice.Int64N(int64(3*h.j.Lease))))
	defer cancel()
	begun := time.Now()
	lease, err := h.locks.Cond(m).Wait(wait, old)
	e.Took, e.Late = time.Since(begun), wait.late()
	h.answered(ctx, &e, lease, err)
	if err != nil {
		return
	}
	defer h.watch(lease)()
	h.stay(ctx, h.j.Hold/4, []*interlock.Lease{lease}, []*hand{h})
	h.release(ctx, lease)
}

// signal signals under the mutex, so that it is known who waits by then. One in eight is for all.
func (h *hand) signal(ctx context.Context) {
	m := h.locks.Mutex(Conditional, nil)
	lease := h.acquire(ctx, &attempt{Event: history.Event{Name: Conditional}, lock: m.Lock})
	if lease == nil {
		return
	}
	defer h.watch(lease)()
	cond := h.locks.Cond(m)
	op, do := history.Signal, cond.Signal
	if h.dice.IntN(8) == 0 {
		op, do = history.Broadcast, cond.Broadcast
	}
	h.write(lease, op, history.Call, nil)
	patient, cancel := context.WithTimeout(ctx, h.j.Patience)
	defer cancel()
	err := do(patient)
	phase := history.OK
	if err != nil || errors.Is(lease.Err(), interlock.ErrLost) { // of a hold that was lost, who waited by then is not known
		phase = history.Unknown
	}
	h.write(lease, op, phase, err)
	h.release(ctx, lease)
}
