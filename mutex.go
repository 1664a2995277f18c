package interlock

import (
	"context"
	"errors"
	"sync"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// The first step of the walk: Lock and TryLock of a mutex. internal/shell/internal/shell/acquire.go goes on; do.go has
// Do.

// Mutex is a lock that one owner holds at a time. It is re-entrant by owner: a Lock with a context that carries the
// owner who holds it succeeds at once; see [Lease.Context] and [WithOwner]. Keep a Mutex, or make a new one for each
// use: all Mutexes of one client with the same name are the same lock. It is safe for concurrent use. The zero value
// cannot be used.
type Mutex struct {
	_    core.NoCopy
	lock core.Lock
}

// inner returns the lock, and nil of a nil Mutex.
func (m *Mutex) inner() *core.Lock {
	if m == nil {
		return nil
	}
	return &m.lock
}

// Mutex returns the mutex of that name with the given options. It asks no engine. An invalid name (empty, longer than
// 512 bytes, not UTF-8) or invalid options are reported by its first call.
func (c *Client) Mutex(name string, opts *LockOptions) *Mutex {
	s := c.in()
	m := &Mutex{lock: core.Lock{Core: s.CoreOf(), Name: name}}
	err := s.CheckMade()
	if err == nil {
		err = shell.ValidateName("name of the lock", name)
	}
	if err != nil {
		m.lock.Terms = &core.Terms{Kind: driver.KindMutex, Err: err}
		return m
	}
	m.lock.Terms = params(s, opts)
	return m
}

// Lock waits until the mutex is held, and returns the hold. Waiters are served first come, first served, where the
// engine can; they are woken and do not poll.
//
// ctx bounds the waiting and nothing else: the hold goes on when ctx ends. If ctx has ended before the call, Lock
// returns its error. When ctx ends during the wait, the error is a *HeldError if another owner was in the way, and an
// *UnavailableError if the engine did not answer. Both match ctx's error. Whatever the engine granted meanwhile is
// given back.
//
// An engine that cannot be reached at all yields an *UnavailableError at once; a wait that had begun survives broken
// connections. A refusal of the engine is a *RefusedError. A wait that could never end gets ErrDeadlock. An owner that
// lost the lock and has not unlocked it yet gets the *LostError.
//
// It costs one round trip, and one message when it has to wait. It costs nothing when the lock passes on inside the
// process or this client retains it.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) {
	return handOver(shell.Acquire(ctx, m.inner(), false))
}

// TryLock is Lock without waiting: if another owner holds the mutex, or waits for it, the error is a *HeldError. It
// costs one round trip, or none if an owner of this client is in the way. If another client may merely retain the lock,
// it waits for 50 ms, or for four round trips if that is more.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) {
	return handOver(shell.Acquire(ctx, m.inner(), true))
}

// Locker returns the mutex as a sync.Locker, for code that knows nothing else. Its Lock waits as long as ctx allows and
// panics on an error; its Unlock panics if the hold was lost. As with sync.Mutex, each Lock is an owner of its own: an
// owner in ctx does not re-enter. There is no loss signal, so prefer Do.
func (m *Mutex) Locker(ctx context.Context) sync.Locker {
	shell.PanicOn(shell.CheckContext(ctx))
	return &locker{m: m.inner(), ctx: context.WithValue(ctx, core.OwnerKey{}, (*core.Owner)(nil))}
}

// locker is a mutex with the lease that its Lock has taken.
type locker struct {
	m     *core.Lock
	ctx   context.Context //nolint:containedctx // sync.Locker has no parameter to take it from
	lease *core.Hold      // written only by the holder, so it needs no guard
}

// Lock panics on an error: the interface has no other way to report one.
func (l *locker) Lock() {
	lease, err := shell.Acquire(l.ctx, l.m, false)
	if err != nil {
		panic(err)
	}
	l.lease = lease
}

// Unlock panics if the hold was lost or there is none. A release that the engine refuses goes on in the background: the
// work was protected, and Observer.Released is told.
func (l *locker) Unlock() {
	if l.lease == nil {
		panic("interlock: unlock of a Locker that is not locked")
	}
	lease := l.lease
	l.lease = nil
	if err := shell.UnlockInTime(l.ctx, lease); err != nil && (errors.Is(err, ErrLost) || driver.Refusal(err) == nil) {
		panic(err)
	}
}
