package interlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// Several mutexes at once: in one step where the engine can (multi_together.go), and otherwise one after the other in
// an order that excludes deadlock. multi_lease.go has what the caller gets; docs/adr/0034 the decision.

// Multi is several mutexes that are taken together: all of them or none. Make one with [Client.Multi] or [MultiOf]. It
// is safe for concurrent use. The zero value cannot be used.
//
// If all of them are free they are taken in one step where the engine can: in memory, and on Redis. They must be of one
// client for that, and the owner must hold none of them yet. Redis can if the names share a slot, the owner has no name
// and there is no LockDelay. On one server all names share a slot; in a Cluster give them the same {tag}.
//
// Otherwise, and when one of them is held, they are taken one after the other, by name, so that the order is the same
// in every process. See Options.Store for several stores. So owners that take locks by Multi never wait for each other
// in a cycle. During the wait for one, those before it are held.
//
// An owner that already holds a mutex, and now wants one that comes before it in that order, could cause a deadlock. It
// takes that one if it is free; instead of waiting for it, it gets an error that matches ErrDeadlock. Other locks that
// the owner holds (permits, reads and writes, an election) have no place in that order and do not count.
type Multi struct {
	_     core.NoCopy
	locks []*core.Lock // distinct, in the order given
	order []*core.Lock // the same, in the order of taking
	given []int        // where each of order is in locks
	err   error        // reported by the first call
}

// Multi returns the mutexes of those names with the given options, to be taken together. A name that is given twice
// counts once. It asks no engine; invalid names and options are reported by the first call.
func (c *Client) Multi(names []string, opts *LockOptions) *Multi {
	locks := make([]*Mutex, len(names))
	for i, name := range names {
		locks[i] = c.Mutex(name, opts)
	}
	return MultiOf(locks...)
}

// MultiOf returns the given mutexes, to be taken together. They may be of several clients, and of several engines. If a
// lock is given twice the first counts, with its options. Locks of the same name of two clients must be in two stores:
// see Options.Store. It asks no engine; what is wrong with a mutex is reported by the first call.
func MultiOf(locks ...*Mutex) *Multi {
	m := &Multi{}
	type lockID struct { // a set, because there may be thousands: not each compared with each
		c *shell.Client
		driver.Key
	}
	seen := make(map[lockID]struct{}, len(locks))
	for _, l := range locks {
		if l == nil {
			m.err = errors.New("interlock: MultiOf: a mutex is nil")
			return m
		}
		if m.err = shell.CheckLock(&l.lock); m.err != nil {
			return m
		}
		if _, twice := seen[lockID{shell.ClientOfLock(&l.lock), l.lock.Key()}]; !twice {
			seen[lockID{shell.ClientOfLock(&l.lock), l.lock.Key()}] = struct{}{}
			m.locks = append(m.locks, l.inner())
		}
	}
	if len(m.locks) == 0 {
		m.err = errors.New("interlock: Multi: there are no names: give at least one")
		return m
	}
	m.sort()
	for i, l := range m.order[1:] {
		if core.Compare(m.order[i], l) == 0 {
			m.err = fmt.Errorf("interlock: MultiOf: %q is given by two clients that cannot be told apart: "+
				"use one client, or give their Options.Store two values if these are two stores", l.Key().Name)
		}
	}
	return m
}

// sort computes the order in which the locks are taken.
func (m *Multi) sort() {
	for i := range m.locks {
		m.given = append(m.given, i)
	}
	slices.SortFunc(m.given, func(a, b int) int { return core.Compare(m.locks[a], m.locks[b]) })
	for _, at := range m.given {
		m.order = append(m.order, m.locks[at])
	}
}

// Lock waits until all the mutexes are held, and returns the holds, which have one owner: that of ctx, or a new one.
// ctx bounds the waiting for all of them together. If one of them cannot be had, or if one that was taken is lost
// meanwhile, those taken are given back and the error says which it was. Errors are as for [Mutex.Lock], and
// ErrDeadlock as described at Multi.
//
// It costs one round trip if it takes all in one step; see [driver.MultiAcquirer] for which engines can. Otherwise it
// costs the round trips of as many Locks, one after the other, and one more if it has tried all in one step before.
func (m *Multi) Lock(ctx context.Context) (*MultiLease, error) { return m.acquire(ctx, false) }

// TryLock takes all the mutexes if they are free, and otherwise none: the error is then a *HeldError for one that is
// not. In one step (see Multi) nobody sees some of them taken meanwhile, and it costs one round trip, whatever the
// answer is. If a client merely retains one of them ([LockOptions].Retain), they are tried one after the other, each as
// by [Mutex.TryLock].
func (m *Multi) TryLock(ctx context.Context) (*MultiLease, error) { return m.acquire(ctx, true) }

// Do calls fn while it holds all the mutexes, and releases them whatever fn does; see [Mutex.Do].
func (m *Multi) Do(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	if err := shell.CheckCall(m.checkMade(), ctx); err != nil {
		return err
	}
	if fn == nil {
		return fmt.Errorf("interlock: Multi: %w", shell.ErrNoFunction)
	}
	l, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = shell.Joined(err, l.unlockInTime(ctx)) }()
	return fn(l.Context(ctx))
}

// acquire is Lock and TryLock. The attempt in one step is made once. Waiting in order means holding the locks before
// the one that is waited for, and trying all again would mean giving those back.
func (m *Multi) acquire(ctx context.Context, try bool) (*MultiLease, error) {
	if err := shell.CheckCall(m.checkMade(), ctx); err != nil {
		return nil, err
	}
	wait := time.Duration(0)
	if !try {
		wait = m.wait()
	}
	bound, bounded := shell.BoundWait(ctx, wait)
	all, err := m.takeAll(bounded, try)
	return all, bound.End("lock", m.order[0].Key(), err)
}

// wait returns the shortest Wait of the mutexes, or 0 if none has one.
func (m *Multi) wait() (shortest time.Duration) {
	for _, l := range m.locks {
		if wait := l.Terms.Wait; wait > 0 && (shortest == 0 || wait < shortest) {
			shortest = wait
		}
	}
	return shortest
}

// takeAll is acquire within the bound that ctx has.
func (m *Multi) takeAll(ctx context.Context, try bool) (*MultiLease, error) {
	o := shell.OwnerFrom(ctx)
	if o == nil {
		o = &core.Owner{ID: shell.ClientOfLock(m.order[0]).NewID()}
	}
	all := newMultiLease(o, len(m.locks))
	whole := false
	defer func() { // also after a panic of the Observer
		if !whole {
			all.giveBack(ctx)
		}
	}()
	locks := m.labelled(ctx)
	err := m.takeTogether(ctx, all, locks, try)
	if errors.Is(err, errOneByOne) {
		err = m.takeInOrder(ctx, all, locks, try)
	}
	if err == nil {
		whole = true
		return all, nil
	}
	return nil, all.cutShort(m.order[0].Key(), err)
}

// takeInOrder takes locks, which are in the order of taking, into all, one after the other, until one cannot be had.
func (m *Multi) takeInOrder(ctx context.Context, all *MultiLease, locks []*core.Lock, try bool) error {
	// The wait for the next one ends when one that was taken is lost.
	waiting, stop := all.context(ctx)
	defer stop(nil)
	for i, l := range locks {
		lease, err := m.take(waiting, l, all.owner, try)
		if err == nil {
			err = all.add(m.given[i], lease)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// take takes one of the mutexes. It does not wait for one that comes before another which o holds.
func (m *Multi) take(ctx context.Context, l *core.Lock, o *core.Owner, try bool) (*core.Hold, error) {
	if try {
		return shell.Acquire(ctx, l, true)
	}
	above := shell.HeldLater(o, l)
	if above == nil || o.Has(l.Core, l.Key()) {
		return shell.Acquire(ctx, l, false)
	}
	lease, err := shell.Acquire(ctx, l, true)
	var held *HeldError
	if !errors.As(err, &held) {
		return lease, err
	}
	return nil, fmt.Errorf("interlock: lock %q: %w: its owner holds %q, which comes after it, so it must not wait "+
		"for it: %s; "+
		"take them together, or in the order of their names", l.Key().Name, ErrDeadlock, above.Lock.Key().Name, held.Error())
}
