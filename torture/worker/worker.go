package worker

import (
	"context"
	"errors"
	"math/rand/v2"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
)

// worker is one goroutine, which takes locks.
type worker struct {
	j     *Job
	log   *history.Writer
	locks *interlock.Client
	gor   int
	dice  *rand.Rand
	reg   *register.Client
	seq   int
}

func newWorker(j *Job, log *history.Writer, locks *interlock.Client, gor int) *worker {
	seed := j.Seed + uint64(j.Life)<<40
	return &worker{
		j: j, log: log, locks: locks, gor: gor, dice: rand.New(rand.NewPCG(seed, uint64(j.Proc)<<16|uint64(gor))),
	}
}

// work takes locks until ctx ends.
func (w *worker) work(ctx context.Context) {
	w.withOwnRegister(ctx, func(ctx context.Context) {
		if w.j.Long > 0 {
			w.holdLong(ctx)
			return
		}
		for ctx.Err() == nil && (w.j.MaxCycles == 0 || w.seq < w.j.MaxCycles) {
			w.seq++
			w.cycle(ctx)
		}
	})
}

// withOwnRegister does something with a connection to the register, which one goroutine may use at a time.
func (w *worker) withOwnRegister(ctx context.Context, do func(ctx context.Context)) {
	if w.reg = w.dialPatiently(ctx); w.reg == nil {
		return
	}
	defer func() { _ = w.reg.Close() }()
	do(ctx)
}

// dialPatiently connects to the register, also while the process can open nothing. It returns nil when ctx has ended.
func (w *worker) dialPatiently(ctx context.Context) *register.Client {
	for ctx.Err() == nil {
		reg, err := register.Dial(ctx, w.j.Register)
		if err == nil {
			return reg
		}
		w.event(history.Start, history.Fail, err)
		enginekit.Pause(ctx, 100*time.Millisecond)
	}
	return nil
}

// cycle does one piece of work. Most of it counts under a mutex.
func (w *worker) cycle(ctx context.Context) {
	name := w.j.Names[w.dice.IntN(len(w.j.Names))]
	switch {
	case w.j.Retain > 0 && w.dice.IntN(4) > 0:
		w.burst(ctx, name)
		return
	case w.j.Held:
		w.hold(ctx, name)
		return
	}
	switch n := w.dice.IntN(20); {
	case !w.j.Mixed:
		w.countUnder(ctx, name)
	case n < 2:
		w.reenter(ctx, name)
	case n < 4 && len(w.j.Names) > 1:
		w.takeSeveral(ctx)
	case n < 9 && len(w.j.Shares) > 0:
		switch how := w.j.Shares[w.dice.IntN(len(w.j.Shares))]; how {
		case history.Latch:
			w.countDown(ctx)
		case history.Waits:
			w.waitAndSignal(ctx)
		default:
			w.share(ctx, how)
		}
	default:
		w.countUnder(ctx, name)
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
func (w *worker) manner() manner {
	switch n := w.dice.IntN(20); {
	case n < 10:
		return careful
	case n < 18:
		return careless
	}
	return overrun
}

// countUnder is one acquisition: read, hold, write one more, release.
func (w *worker) countUnder(ctx context.Context, name string) {
	how := w.manner()
	a := &attempt{Event: history.Event{Name: name, Fixed: how == overrun}, lock: w.locks.Mutex(name, nil).Lock}
	if how == overrun {
		a.lock = w.locks.Mutex(name, &interlock.LockOptions{Lease: FixedLease(w.j.Lease), NoRenew: true}).Lock
	}
	lease := w.acquire(ctx, a)
	if lease == nil {
		return
	}
	defer w.watch(lease)()
	w.count(ctx, lease, how)
	w.release(ctx, lease)
}

// hold is one hold of a workload of such. The holder looks all the time, and goes when it has lost it.
func (w *worker) hold(ctx context.Context, name string) {
	lease := w.acquire(ctx, &attempt{Event: history.Event{Name: name}, lock: w.locks.Mutex(name, nil).Lock})
	if lease == nil {
		return
	}
	defer w.watch(lease)()
	const looks = 100
	for range looks {
		stamp, ok := lease.Stamp()
		if !ok || w.countOnce(ctx, lease, stamp, careful, w.j.Hold/looks) != nil || ctx.Err() != nil {
			break
		}
	}
	w.release(ctx, lease)
}

// mostRounds is how often a holder counts at most.
const mostRounds = 8

// count reads both numbers and writes them one larger, several times.
func (w *worker) count(ctx context.Context, lease *interlock.Lease, how manner) {
	stamp, ok := lease.Stamp()
	if !ok {
		return
	}
	rounds, all := w.rounds(w.j.Hold)
	if how == overrun {
		rounds, all = mostRounds, w.j.Lease/2
	}
	for range rounds {
		if err := w.countOnce(ctx, lease, stamp, how, all/time.Duration(rounds)); err != nil && how == careful {
			return
		}
	}
}

// rounds is how often a holder does something, and how long that takes in all: mean on average.
func (w *worker) rounds(mean time.Duration) (rounds int, all time.Duration) {
	return 1 + w.dice.IntN(mostRounds), time.Duration(w.dice.Int64N(int64(2*mean) + 1))
}

// entry is a request of the register.
func (w *worker) entry(lease *interlock.Lease, stamp fence.Stamp) register.Entry {
	return register.Entry{
		Proc: w.j.Proc, Gor: w.gor, Seq: w.seq, Name: lease.Name(), Token: stamp.Token, Nonce: stamp.Nonce,
		Shared: stamp.Shared,
	}
}

// countOnce reads, holds, and writes.
func (w *worker) countOnce(
	ctx context.Context, lease *interlock.Lease, stamp fence.Stamp, how manner, hold time.Duration,
) error {
	at := w.entry(lease, stamp)
	var read [2]int
	for i, fenced := range []bool{true, false} {
		at.Fenced = fenced
		n, err := w.touch(lease, how, history.Read, at)
		if err != nil && !errors.Is(err, register.ErrStale) {
			return err
		}
		read[i] = n
	}
	enginekit.Pause(ctx, hold)
	at.Write = true
	var refused error
	for i, fenced := range []bool{true, false} {
		at.Fenced, at.Value = fenced, read[i]+1
		// The number that is not fenced is written although the fence has just refused the other:
		// its users have no fence.
		_, err := w.touch(lease, how, history.Write, at)
		if err != nil && !errors.Is(err, register.ErrStale) {
			return err
		}
		refused = errors.Join(refused, err)
	}
	return refused
}

// touch makes one request of the register. To look before it can never be enough, because the request takes its time.
func (w *worker) touch(lease *interlock.Lease, how manner, op history.Op, at register.Entry) (int, error) {
	if how == careful {
		if err := w.look(lease, op); err != nil {
			return 0, err
		}
	}
	return w.reg.Do(at)
}

// look records that the holder looked whether its hold lasts, and found that it does. The deadline that is
// recorded is that of before the look: after a stop between the look and the record it would be the instant at
// which the loss was noticed.
func (w *worker) look(lease *interlock.Lease, op history.Op) error {
	deadline := lease.Deadline()
	if err := lease.Err(); err != nil {
		return err
	}
	e := w.of(lease, op, history.Call)
	e.Deadline = history.At(deadline)
	w.log.Write(e)
	return nil
}

func (w *worker) release(ctx context.Context, lease *interlock.Lease) {
	w.announce(register.Releases)
	w.write(lease, history.Release, history.Call, nil)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	err := lease.Unlock(ctx)
	cancel()
	w.write(lease, history.Release, phaseOf(err), err)
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
func (w *worker) write(lease *interlock.Lease, op history.Op, phase history.Phase, err error) {
	e := w.of(lease, op, phase)
	e.Deadline = history.At(lease.Deadline())
	if err != nil {
		e.Err, e.Reason = err.Error(), reasonOf(err, e.Name)
	}
	w.log.Write(e)
}

// of is an event of a hold.
func (w *worker) of(lease *interlock.Lease, op history.Op, phase history.Phase) history.Event {
	return history.Event{
		Proc: w.j.Proc, Gor: w.gor, Seq: w.seq, Op: op, Phase: phase, Name: lease.Name(), Token: lease.Token(),
	}
}

func (w *worker) event(op history.Op, phase history.Phase, err error) {
	w.log.Write(history.Event{Proc: w.j.Proc, Gor: w.gor, Seq: w.seq, Op: op, Phase: phase, Err: err.Error()})
}
