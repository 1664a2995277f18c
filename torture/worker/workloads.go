package worker

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
)

// The semaphore of all processes has few permits, so that they are wanted by more than there are.
const (
	Semaphore = "permits"
	Permits   = 2
)

// share holds a lock that others may hold beside it.
func (w *worker) share(ctx context.Context, how history.Share) {
	a := &attempt{Event: history.Event{Share: how, Name: "shared"}}
	switch rw := w.locks.RWMutex(a.Name, nil); how {
	case history.Reads:
		a.lock = rw.RLock
	case history.Writes:
		a.lock = rw.Lock
	case history.Upgrades:
		a.lock = rw.UpgradeableRLock
	case history.Permits:
		a.Name, a.Weight, a.Limit = Semaphore, 1+w.dice.IntN(2), Permits
		s := w.locks.Semaphore(a.Name, Permits, nil)
		a.lock = func(ctx context.Context) (*interlock.Lease, error) { return s.Acquire(ctx, a.Weight) }
	}
	lease := w.acquire(ctx, a)
	if lease == nil {
		return
	}
	defer w.watch(lease)()
	w.linger(ctx, lease)
	if how != history.Permits {
		w.turn(ctx, lease, how)
	}
	w.release(ctx, lease)
}

// linger holds for long, so that others come.
func (w *worker) linger(ctx context.Context, lease *interlock.Lease) {
	w.stay(ctx, 4*w.j.Hold, []*interlock.Lease{lease}, []*worker{w})
}

// takeSeveral holds two of the mutexes, in any order, both or none.
func (w *worker) takeSeveral(ctx context.Context) {
	first := w.dice.IntN(len(w.j.Names))
	second := (first + 1 + w.dice.IntN(len(w.j.Names)-1)) % len(w.j.Names)
	var locks []*interlock.Mutex
	var events []*history.Event
	var as []*worker // each hold has a number of its own
	for i, at := range []int{first, second} {
		part := *w
		part.seq += i
		as = append(as, &part)
		events = append(events, &history.Event{Name: w.j.Names[at], Several: true})
		locks = append(locks, w.locks.Mutex(w.j.Names[at], nil))
		part.asks(events[i])
	}
	w.seq++
	wait, cancel := w.patience(ctx)
	begun := time.Now()
	all, err := interlock.MultiOf(locks...).Lock(wait)
	events[0].Took, events[0].Late = time.Since(begun), wait.late()
	cancel()
	leases := make([]*interlock.Lease, len(events))
	if err == nil {
		leases = all.Leases()
	}
	for i, e := range events {
		as[i].answered(ctx, e, leases[i], err)
	}
	if err != nil {
		return
	}
	for i, l := range leases {
		defer as[i].watch(l)()
	}
	w.stay(ctx, w.j.Hold, leases, as)
	w.announce(register.Releases)
	for i, l := range leases {
		as[i].write(l, history.Release, history.Call, nil)
	}
	end, cancelEnd := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancelEnd()
	err = all.Unlock(end)
	for i, l := range leases {
		as[i].write(l, history.Release, phaseOf(err), err)
	}
}

// reenter takes a mutex several times as the same owner, gives the holds back in any order, and counts under the last.
func (w *worker) reenter(ctx context.Context, name string) {
	m, named := w.locks.Mutex(name, nil), w.j.Named && w.dice.IntN(2) == 0
	if named {
		ctx = interlock.WithOwner(ctx, fmt.Sprintf("owner-%d-%d-%d-%d", w.j.Proc, w.j.Life, w.gor, w.seq))
	}
	outer := w.acquire(ctx, &attempt{Event: history.Event{Name: name, Named: named}, lock: m.Lock})
	if outer == nil {
		return
	}
	holds := []*interlock.Lease{outer}
	for range 1 + w.dice.IntN(4) {
		if w.dice.IntN(5) == 0 {
			w.failAgain(ctx, m, outer)
		}
		inner, err := w.lockAgain(ctx, m, outer)
		if err != nil {
			break
		}
		holds = append(holds, inner)
	}
	w.dice.Shuffle(len(holds), func(i, j int) { holds[i], holds[j] = holds[j], holds[i] })
	last := holds[0]
	for _, l := range holds[1:] {
		w.leave(ctx, l)
	}
	if errors.Is(last.Err(), interlock.ErrReleased) {
		w.write(last, history.Reenter, history.Fail, errors.New("the last hold was given back with another"))
	}
	defer w.watch(last)()
	w.count(ctx, last, careful)
	w.release(ctx, last)
}

// leave gives back one of several holds. Those of an owner with a name are the engine's.
func (w *worker) leave(ctx context.Context, lease *interlock.Lease) {
	w.announce(register.Releases)
	w.write(lease, history.Leave, history.Call, nil)
	end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer cancel()
	err := lease.Unlock(end)
	w.write(lease, history.Leave, phaseOf(err), err)
}

// failAgain is a re-entry whose context has ended: it must not count as a hold.
func (w *worker) failAgain(ctx context.Context, m *interlock.Mutex, outer *interlock.Lease) {
	over, cancel := context.WithCancel(outer.Context(ctx))
	cancel()
	if _, err := m.Lock(over); err == nil {
		w.write(outer, history.Reenter, history.Fail, errors.New("it was entered again although the context had ended"))
	}
}

// lockAgain is one re-entry, recorded with the token and the nonce that it got.
func (w *worker) lockAgain(ctx context.Context, m *interlock.Mutex, outer *interlock.Lease) (*interlock.Lease, error) {
	wait, cancel := context.WithTimeout(outer.Context(ctx), w.j.Patience)
	defer cancel()
	inner, err := m.Lock(wait)
	if err != nil {
		w.write(outer, history.Reenter, history.Unknown, err)
		return nil, err
	}
	if stamp, ok := inner.Stamp(); ok {
		w.log.Write(history.Event{
			Proc: w.j.Proc, Gor: w.gor, Seq: w.seq, Op: history.Reenter, Phase: history.OK, Name: inner.Name(),
			Token: stamp.Token, Nonce: stamp.Nonce,
		})
	}
	return inner, nil
}

// turn has a hold of a read-write lock change its mode, and holds on after that: an upgradeable read writes, and reads
// again; one writer in three reads on. One plain reader in three asks to write, which is refused.
func (w *worker) turn(ctx context.Context, lease *interlock.Lease, how history.Share) {
	switch {
	case how == history.Upgrades:
		if w.turnTo(ctx, lease, history.Writes, lease.Upgrade) && w.dice.IntN(2) == 0 {
			w.turnTo(ctx, lease, history.Upgrades, lease.Downgrade)
		}
	case w.dice.IntN(3) > 0:
	case how == history.Writes:
		w.turnTo(ctx, lease, history.Reads, lease.Downgrade)
	default:
		w.turnTo(ctx, lease, history.Writes, lease.Upgrade)
	}
}

// turnTo is one change of a mode, and the time after it. It reports whether there was one.
func (w *worker) turnTo(
	ctx context.Context, lease *interlock.Lease, to history.Share, turn func(context.Context) error,
) bool {
	e := history.Event{
		Proc: w.j.Proc, Gor: w.gor, Seq: w.seq, Op: history.Turn, Phase: history.Call, Name: lease.Name(), Share: to,
		Deadline: history.At(lease.Deadline()),
	}
	w.announce(register.Converts)
	w.log.Write(e)
	wait, cancel := w.patience(ctx)
	begun := time.Now()
	err := turn(wait)
	e.Took, e.Late = time.Since(begun), wait.late()
	cancel()
	stamp, _ := lease.Stamp()
	e.Phase, e.Token, e.Deadline, e.Stamp = history.OK, lease.Token(), history.At(lease.Deadline()), roleOf(stamp)
	if err != nil {
		e.Phase, e.Err, e.Reason = history.Fail, err.Error(), reasonOf(err, e.Name)
		// A downgrade may be done, and only the engine's word be missing that the write was given back.
		if errors.Is(err, interlock.ErrUnavailable) || to != history.Writes && stamp.Shared {
			e.Phase = history.Unknown
		}
	}
	w.log.Write(e)
	if lease.Err() == nil { // what was refused left it as it was
		w.stay(ctx, w.j.Hold, []*interlock.Lease{lease}, []*worker{w})
	}
	return err == nil
}

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

// LatchCount is from how far latches are counted down.
const LatchCount = 3

// countDown sets a latch that nobody else knows and counts it down, while another goroutine of this process waits for
// zero: it must count each once, whatever gets lost on the way, and nobody may be let go before. They share the
// process's client, because a second one would have connections of its own, and under the fault one-connection each
// takes the other's place.
func (w *worker) countDown(ctx context.Context) {
	name := fmt.Sprintf("latch-%d-%d-%d-%d", w.j.Proc, w.j.Life, w.gor, w.seq)
	latch := w.locks.Latch(name)
	patient, cancel := context.WithTimeout(ctx, w.j.Patience)
	defer cancel()
	if _, err := latch.Set(patient, LatchCount); err != nil {
		return // whether it was set is not known
	}
	waiting, stop := context.WithCancel(ctx)
	defer stop()
	waited := make(chan struct{})
	go func() { // ends with waiting
		defer close(waited)
		if err := latch.Wait(waiting); ctx.Err() == nil { // else the work is over
			w.counted(history.Await, name, 0, err)
		}
	}()
	for i := range LatchCount {
		enginekit.Pause(ctx, time.Duration(w.dice.Int64N(int64(w.j.Hold)+1)))
		w.log.Write(
			history.Event{
				Proc: w.j.Proc, Gor: w.gor, Seq: w.seq, Op: history.CountDown, Phase: history.Call, Name: name,
			})
		left, err := latch.CountDown(patient)
		w.counted(history.CountDown, name, int(left), err)
		// it is not known to be counted, or somebody has forgotten a count
		if last := i == LatchCount-1; err != nil || last && left > 0 {
			stop() // nobody may ever be let go
			break
		}
	}
	defer time.AfterFunc(w.j.Patience, stop).Stop()
	<-waited
}

// counted records what an operation on a latch has said.
func (w *worker) counted(op history.Op, name string, left int, err error) {
	e := history.Event{Proc: w.j.Proc, Gor: w.gor, Seq: w.seq, Op: op, Phase: history.OK, Name: name, Weight: left}
	if err != nil {
		e.Phase, e.Err = history.Unknown, err.Error()
	}
	w.log.Write(e)
}
