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
	h.withOwnRegister(ctx, func(ctx context.Context) {
		if h.j.Long > 0 {
			h.holdLong(ctx)
			return
		}
		for ctx.Err() == nil && (h.j.MaxCycles == 0 || h.seq < h.j.MaxCycles) {
			h.seq++
			h.cycle(ctx)
		}
	})
}

// withOwnRegister does something with a connection to the register, which one goroutine may use at a time.
func (h *hand) withOwnRegister(ctx context.Context, do func(ctx context.Context)) {
	if h.reg = h.dialPatiently(ctx); h.reg == nil {
		return
	}
	defer func() { _ = h.reg.Close() }()
	do(ctx)
}

// dialPatiently connects to the register, also while the process can open nothing. It returns nil when ctx has ended.
func (h *hand) dialPatiently(ctx context.Context) *register.Client {
	for ctx.Err() == nil {
		reg, err := register.Dial(ctx, h.j.Register)
		if err == nil {
			return reg
		}
		h.event(history.Start, history.Fail, err)
		pause(ctx, 100*time.Millisecond)
	}
	return nil
}

// cycle does one piece of work. Most of it counts under a mutex.
func (h *hand) cycle(ctx context.Context) {
	name := h.j.Names[h.dice.IntN(len(h.j.Names))]
	switch n := h.dice.IntN(20); {
	case !h.j.Mixed:
		h.countUnder(ctx, name)
	case n < 2:
		h.reenter(ctx, name)
	case n < 4 && len(h.j.Names) > 1:
		h.takeSeveral(ctx)
	case n < 9 && len(h.j.Shares) > 0:
		switch how := h.j.Shares[h.dice.IntN(len(h.j.Shares))]; how {
		case history.Latch:
			h.countDown(ctx)
		case history.Waits:
			h.waitAndSignal(ctx)
		default:
			h.share(ctx, how)
		}
	default:
		h.countUnder(ctx, name)
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

// countUnder is one acquisition: read, hold, write one more, release.
func (h *hand) countUnder(ctx context.Context, name string) {
	how := h.manner()
	a := &attempt{Event: history.Event{Name: name, Fixed: how == overrun}, lock: h.locks.Mutex(name, nil).Lock}
	if how == overrun {
		a.lock = h.locks.Mutex(name, &interlock.LockOptions{Lease: FixedLease(h.j.Lease), NoRenew: true}).Lock
	}
	lease := h.acquire(ctx, a)
	if lease == nil {
		return
	}
	defer h.watch(lease)()
	h.count(ctx, lease, how)
	h.release(ctx, lease)
}

// mostRounds is how often a holder counts at most.
const mostRounds = 8

// count reads both numbers and writes them one larger, several times.
func (h *hand) count(ctx context.Context, lease *interlock.Lease, how manner) {
	stamp, ok := lease.Stamp()
	if !ok {
		return
	}
	rounds, all := h.rounds(h.j.Hold)
	if how == overrun {
		rounds, all = mostRounds, h.j.Lease/2
	}
	for range rounds {
		if err := h.countOnce(ctx, lease, stamp, how, all/time.Duration(rounds)); err != nil && how == careful {
			return
		}
	}
}

// rounds is how often a holder does something, and how long that takes in all: mean on average.
func (h *hand) rounds(mean time.Duration) (rounds int, all time.Duration) {
	return 1 + h.dice.IntN(mostRounds), time.Duration(h.dice.Int64N(int64(2*mean) + 1))
}

// entry is a request of the register.
func (h *hand) entry(lease *interlock.Lease, stamp fence.Stamp) register.Entry {
	return register.Entry{
		Proc: h.j.Proc, Gor: h.gor, Seq: h.seq, Name: lease.Name(), Token: stamp.Token, Nonce: stamp.Nonce, Shared: stamp.Shared,
	}
}

// countOnce reads, holds, and writes.
func (h *hand) countOnce(ctx context.Context, lease *interlock.Lease, stamp fence.Stamp, how manner, hold time.Duration) error {
	at := h.entry(lease, stamp)
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
		if err := h.look(lease, op); err != nil {
			return 0, err
		}
	}
	return h.reg.Do(at)
}

// look records that the holder looked whether its hold lasts, and found that it does. The deadline that is recorded is that of before
// the look: after a stop between the look and the record it would be the instant at which the loss was noticed.
func (h *hand) look(lease *interlock.Lease, op history.Op) error {
	deadline := lease.Deadline()
	if err := lease.Err(); err != nil {
		return err
	}
	e := h.of(lease, op, history.Call)
	e.Deadline = history.At(deadline)
	h.log.Write(e)
	return nil
}

func (h *hand) release(ctx context.Context, lease *interlock.Lease) {
	h.write(lease, history.Release, history.Call, nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	err := lease.Unlock(ctx)
	cancel()
	h.write(lease, history.Release, phaseOf(err), err)
}

// phaseOf is how far a release has come that ended with err.
func phaseOf(err error) history.Phase {
	switch {
	case err == nil:
		return history.OK
	case errors.Is(err, interlock.ErrLost):
		return history.Fail
	}
	return history.Unknown
}

// write records something about a hold.
func (h *hand) write(lease *interlock.Lease, op history.Op, phase history.Phase, err error) {
	e := h.of(lease, op, phase)
	e.Deadline = history.At(lease.Deadline())
	if err != nil {
		e.Err = err.Error()
	}
	h.log.Write(e)
}

// of is an event of a hold.
func (h *hand) of(lease *interlock.Lease, op history.Op, phase history.Phase) history.Event {
	return history.Event{
		Proc: h.j.Proc, Gor: h.gor, Seq: h.seq, Op: op, Phase: phase, Name: lease.Name(), Token: lease.Token(),
	}
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
