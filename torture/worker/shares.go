package worker

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock"
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
