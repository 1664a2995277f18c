package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
)

// hand is one goroutine.
type hand struct {
	j     *Job
	log   *history.Writer
	locks *interlock.Client
	gor   int
	dice  *rand.Rand
	reg   *register.Client
	seq   int
}

func newHand(j *Job, log *history.Writer, locks *interlock.Client, gor int) *hand {
	seed := j.Seed + uint64(j.Life)<<40
	return &hand{j: j, log: log, locks: locks, gor: gor, dice: rand.New(rand.NewPCG(seed, uint64(j.Proc)<<16|uint64(gor)))}
}

// work takes locks until ctx ends.
func (h *hand) work(ctx context.Context) {
	reg, err := register.Dial(ctx, h.j.Register)
	if err != nil {
		h.event(history.Start, history.Fail, err)
		return
	}
	h.reg = reg
	defer func() { _ = reg.Close() }()
	for ctx.Err() == nil && (h.j.MaxCycles == 0 || h.seq < h.j.MaxCycles) {
		h.seq++
		h.cycle(ctx, h.j.Names[h.dice.IntN(len(h.j.Names))])
	}
}

// manner is how a holder behaves.
type manner int

const (
	careful  manner = iota // looks before each request whether its hold lasts, and stops when the fence refuses it
	careless               // does neither, as most code does not
	overrun                // is careless, and takes a fixed lease that is shorter than its work
)

// manner draws one: overruns are rare, because they keep everybody waiting.
func (h *hand) manner() manner {
	switch n := h.dice.IntN(20); {
	case n < 10:
		return careful
	case n < 18:
		return careless
	}
	return overrun
}

// cycle is one acquisition: read, hold, write one more, release.
func (h *hand) cycle(ctx context.Context, name string) {
	how := h.manner()
	lease := h.acquire(ctx, name, how)
	if lease == nil {
		return
	}
	gone := make(chan struct{})
	done := make(chan struct{})
	go func() { // ends with the hold
		defer close(done)
		select {
		case <-lease.Lost():
			h.write(lease, history.Lost, history.OK, nil)
		case <-gone:
		}
	}()
	h.count(ctx, lease, how)
	h.release(ctx, lease)
	close(gone)
	<-done
}

func (h *hand) acquire(ctx context.Context, name string, how manner) *interlock.Lease {
	m := h.locks.Mutex(name, nil)
	if how == overrun {
		m = h.locks.Mutex(name, &interlock.LockOptions{Lease: h.j.Lease / 4, NoRenew: true})
	}
	patience := h.j.Patience
	if h.dice.Float64() < h.j.Cancel {
		patience = time.Duration(h.dice.Int64N(int64(h.j.Patience / 4)))
	}
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	h.log.Write(history.Event{Proc: h.j.Proc, Gor: h.gor, Seq: h.seq, Op: history.Acquire, Phase: history.Call, Name: name})
	begun := time.Now()
	lease, err := m.Lock(wait)
	e := history.Event{Proc: h.j.Proc, Gor: h.gor, Seq: h.seq, Op: history.Acquire, Name: name, Took: time.Since(begun), Fixed: how == overrun}
	if end, _ := wait.Deadline(); wait.Err() != nil && ctx.Err() == nil {
		e.Late = time.Since(end)
	}
	if err != nil {
		e.Phase, e.Err = history.Fail, err.Error()
		if errors.Is(err, interlock.ErrUnavailable) {
			e.Phase = history.Unknown
			pause(ctx, 10*time.Millisecond)
		}
		h.log.Write(e)
		return nil
	}
	stamp, ok := lease.Stamp()
	e.Phase, e.Token, e.Nonce, e.Deadline = history.OK, lease.Token(), stamp.Nonce, history.At(lease.Deadline())
	if !ok {
		e.Err = "lost before it was recorded"
	}
	h.log.Write(e)
	return lease
}

// mostRounds is how often a holder counts at most.
const mostRounds = 8

// count reads both numbers and writes them one larger, several times.
func (h *hand) count(ctx context.Context, lease *interlock.Lease, how manner) {
	stamp, ok := lease.Stamp()
	if !ok {
		return
	}
	rounds, all := 1+h.dice.IntN(mostRounds), time.Duration(h.dice.Int64N(int64(2*h.j.Hold)+1))
	if how == overrun {
		rounds, all = mostRounds, h.j.Lease/2
	}
	for range rounds {
		if err := h.countOnce(ctx, lease, stamp, how, all/time.Duration(rounds)); err != nil && how == careful {
			return
		}
	}
}

// countOnce reads, holds, and writes.
func (h *hand) countOnce(ctx context.Context, lease *interlock.Lease, stamp fence.Stamp, how manner, hold time.Duration) error {
	at := register.Entry{Proc: h.j.Proc, Gor: h.gor, Seq: h.seq, Name: lease.Name(), Token: stamp.Token, Nonce: stamp.Nonce}
	var read [2]int
	for i, fenced := range []bool{true, false} {
		at.Fenced = fenced
		n, err := h.touch(lease, how, history.Read, at)
		if err != nil && !errors.Is(err, register.ErrStale) {
			return err
		}
		read[i] = n
	}
	pause(ctx, hold)
	at.Write = true
	var refused error
	for i, fenced := range []bool{true, false} {
		at.Fenced, at.Value = fenced, read[i]+1
		// The number that is not fenced is written although the fence has just refused the other: its users have no fence.
		_, err := h.touch(lease, how, history.Write, at)
		if err != nil && !errors.Is(err, register.ErrStale) {
			return err
		}
		refused = errors.Join(refused, err)
	}
	return refused
}

// touch makes one request of the register. To look before it can never be enough, because the request takes its time.
func (h *hand) touch(lease *interlock.Lease, how manner, op history.Op, at register.Entry) (int, error) {
	if how == careful {
		if err := lease.Err(); err != nil {
			return 0, err
		}
		h.write(lease, op, history.Call, nil)
	}
	return h.reg.Do(at)
}

func (h *hand) release(ctx context.Context, lease *interlock.Lease) {
	h.write(lease, history.Release, history.Call, nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	err := lease.Unlock(ctx)
	cancel()
	phase := history.OK
	switch {
	case errors.Is(err, interlock.ErrLost):
		phase = history.Fail
	case err != nil:
		phase = history.Unknown
	}
	h.write(lease, history.Release, phase, err)
}

// write records something about a hold.
func (h *hand) write(lease *interlock.Lease, op history.Op, phase history.Phase, err error) {
	e := history.Event{
		Proc: h.j.Proc, Gor: h.gor, Seq: h.seq, Op: op, Phase: phase, Name: lease.Name(), Token: lease.Token(),
		Deadline: history.At(lease.Deadline()),
	}
	if err != nil {
		e.Err = err.Error()
	}
	h.log.Write(e)
}

func (h *hand) event(op history.Op, phase history.Phase, err error) {
	h.log.Write(history.Event{Proc: h.j.Proc, Gor: h.gor, Seq: h.seq, Op: op, Phase: phase, Err: err.Error()})
}

func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
