package worker

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/torture/history"
)

// The semaphore of all processes has few permits, so that they are wanted by more than there are.
const (
	Semaphore = "permits"
	Permits   = 2
)

// share holds a lock that others may hold beside it.
func (h *hand) share(ctx context.Context, how history.Share) {
	a := &attempt{Event: history.Event{Share: how, Name: "shared"}}
	switch rw := h.locks.RWMutex(a.Name, nil); how {
	case history.Reads:
		a.lock = rw.RLock
	case history.Writes:
		a.lock = rw.Lock
	case history.Upgrades:
		a.lock = rw.UpgradeableRLock
	case history.Permits:
		a.Name, a.Weight, a.Limit = Semaphore, 1+h.dice.IntN(2), Permits
		s := h.locks.Semaphore(a.Name, Permits, nil)
		a.lock = func(ctx context.Context) (*interlock.Lease, error) { return s.Acquire(ctx, a.Weight) }
	}
	lease := h.acquire(ctx, a)
	if lease == nil {
		return
	}
	defer h.watch(lease)()
	h.linger(ctx, lease)
	if how != history.Permits {
		h.turn(ctx, lease, how)
	}
	h.release(ctx, lease)
}

// linger holds for long, so that others come.
func (h *hand) linger(ctx context.Context, lease *interlock.Lease) {
	h.stay(ctx, 4*h.j.Hold, []*interlock.Lease{lease}, []*hand{h})
}

// takeSeveral holds two of the mutexes, in any order, both or none.
func (h *hand) takeSeveral(ctx context.Context) {
	first := h.dice.IntN(len(h.j.Names))
	second := (first + 1 + h.dice.IntN(len(h.j.Names)-1)) % len(h.j.Names)
	var locks []*interlock.Mutex
	var events []*history.Event
	var as []*hand // each hold has a number of its own
	for i, at := range []int{first, second} {
		part := *h
		part.seq += i
		as = append(as, &part)
		events = append(events, &history.Event{Name: h.j.Names[at], Several: true})
		locks = append(locks, h.locks.Mutex(h.j.Names[at], nil))
		part.asks(events[i])
	}
	h.seq++
	wait, cancel := h.patience(ctx)
	defer cancel()
	begun := time.Now()
	all, err := interlock.MultiOf(locks...).Lock(wait)
	events[0].Took, events[0].Late = time.Since(begun), wait.late()
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
	h.stay(ctx, h.j.Hold, leases, as)
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
func (h *hand) reenter(ctx context.Context, name string) {
	m := h.locks.Mutex(name, nil)
	outer := h.acquire(ctx, &attempt{Event: history.Event{Name: name}, lock: m.Lock})
	if outer == nil {
		return
	}
	holds := []*interlock.Lease{outer}
	for range 1 + h.dice.IntN(4) {
		if h.dice.IntN(5) == 0 {
			h.failAgain(ctx, m, outer)
		}
		inner, err := h.lockAgain(ctx, m, outer)
		if err != nil {
			break
		}
		holds = append(holds, inner)
	}
	h.dice.Shuffle(len(holds), func(i, j int) { holds[i], holds[j] = holds[j], holds[i] })
	last := holds[0]
	for _, l := range holds[1:] {
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		_ = l.Unlock(end) // of a hold that was lost meanwhile it says so
		cancel()
	}
	if errors.Is(last.Err(), interlock.ErrReleased) {
		h.write(last, history.Reenter, history.Fail, errors.New("the last hold was given back with another"))
	}
	defer h.watch(last)()
	h.count(ctx, last, careful)
	h.release(ctx, last)
}

// failAgain is a re-entry whose context has ended: it must not count as a hold.
func (h *hand) failAgain(ctx context.Context, m *interlock.Mutex, outer *interlock.Lease) {
	over, cancel := context.WithCancel(outer.Context(ctx))
	cancel()
	if _, err := m.Lock(over); err == nil {
		h.write(outer, history.Reenter, history.Fail, errors.New("it was entered again although the context had ended"))
	}
}

// lockAgain is one re-entry, recorded with the token and the nonce that it got.
func (h *hand) lockAgain(ctx context.Context, m *interlock.Mutex, outer *interlock.Lease) (*interlock.Lease, error) {
	wait, cancel := context.WithTimeout(outer.Context(ctx), h.j.Patience)
	defer cancel()
	inner, err := m.Lock(wait)
	if err != nil {
		h.write(outer, history.Reenter, history.Unknown, err)
		return nil, err
	}
	if stamp, ok := inner.Stamp(); ok {
		h.log.Write(history.Event{
			Proc: h.j.Proc, Gor: h.gor, Seq: h.seq, Op: history.Reenter, Phase: history.OK, Name: inner.Name(),
			Token: stamp.Token, Nonce: stamp.Nonce,
		})
	}
	return inner, nil
}
