package interlock

import (
	"context"
	"errors"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// Mutex is a lock that one owner holds at a time. It is re-entrant by owner: a Lock with a context that carries the
// owner who holds it succeeds at once, see [Lease.Context] and [WithOwner]. Keep it, or make it anew for each use: all
// Mutexes of one client with the same name are the same lock. It is safe for concurrent use. The zero value cannot be
// used.
type Mutex struct {
	_    noCopy
	c    *Client
	name string
	p    *params
}

// key is what the engine knows the lock by. It is put together when it is asked for, because very many Mutexes may be
// kept by their holds.
func (m *Mutex) key() driver.Key { return driver.Key{Kind: m.p.kind, Name: m.name} }

// Mutex returns the mutex of that name with the given options. It asks no engine; an invalid name or invalid options
// are reported by its first call.
func (c *Client) Mutex(name string, opts *LockOptions) *Mutex {
	m := &Mutex{c: c, name: name}
	err := c.made()
	if err == nil {
		err = validateName("name of the lock", name)
	}
	if err != nil {
		m.p = &params{kind: driver.KindMutex, err: err}
		return m
	}
	m.p = c.params(opts)
	return m
}

// Lock waits until the mutex is held, and returns the hold. Waiters are served first come, first served, where the
// engine can; they are woken and do not poll.
//
// ctx bounds the waiting and nothing else: the hold goes on when ctx ends. When ctx ends first, the error is a
// *HeldError if another owner was in the way and an *UnavailableError if the engine did not answer; both match ctx's
// error. Whatever the engine granted meanwhile is given back. A ctx that has ended already yields its error. An engine
// that cannot be reached at all yields an *UnavailableError at once; a wait that had begun survives broken connections.
// An owner that lost the lock and has not unlocked it yet gets the *LostError.
//
// It costs one round trip, and one message when it has to wait; nothing when the lock passes on inside the process.
func (m *Mutex) Lock(ctx context.Context) (*Lease, error) { return m.acquire(ctx, false) }

// TryLock is Lock without waiting: if another owner holds the mutex, or waits for it, the error is a *HeldError.
func (m *Mutex) TryLock(ctx context.Context) (*Lease, error) { return m.acquire(ctx, true) }

// Do calls fn while it holds the mutex, and releases it whatever fn does. fn's context is cancelled when ctx is and the
// moment the hold is lost; a Lock with it re-enters. Do returns fn's error, joined with the *LostError if the hold was
// lost while fn ran, also when fn returned nil; a loss that fn has returned itself, as the cause of its context, is not
// repeated. When fn panics the mutex is released, and the panic goes on. The release does not depend on ctx and is
// waited for at most Options.CloseTimeout: fn's work was protected, so a release that is not confirmed by then goes on
// in the background and is no error of Do; Observer.Released is told. A release that the engine refuses (ErrRefused)
// goes on there too, but is an error of Do, joined with fn's: others wait until somebody has mended what the engine
// says, or the hold has ended by itself.
func (m *Mutex) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	if err := m.mayAcquire(ctx); err != nil {
		return err
	}
	if fn == nil {
		return wrap("do under", m.key(), errNoFunction)
	}
	lease, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	return lease.do(ctx, fn)
}

// TryDo is Do if the mutex is free. It reports false, and no error, if another owner holds it: the work was skipped.
func (m *Mutex) TryDo(ctx context.Context, fn func(ctx context.Context) error) (bool, error) {
	lease, err := m.TryLock(ctx)
	if errors.Is(err, ErrHeld) && driver.IsDefinite(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	if fn == nil { // who only asks whether the work would be skipped has been answered before
		return false, errors.Join(wrap("do under", m.key(), errNoFunction), lease.unlockInTime(ctx))
	}
	return true, lease.do(ctx, fn)
}

// do runs fn under l and unlocks l, also when fn panics.
func (l *Lease) do(ctx context.Context, fn func(ctx context.Context) error) (err error) {
	defer func() { err = joined(err, l.unlockInTime(ctx)) }()
	return fn(l.Context(ctx))
}

// unlockInTime unlocks l whether or not ctx has ended. It waits at most CloseTimeout for the engine's word, and a word
// that has not come by then is no error: the work was protected, and the release goes on in the background. A loss and
// a refusal are errors, whatever else they match.
func (l *Lease) unlockInTime(ctx context.Context) error {
	bounded, cancel := context.WithTimeout(context.WithoutCancel(ctx), l.m.c.opts.CloseTimeout)
	defer cancel()
	err := l.Unlock(bounded)
	if errors.Is(err, ErrUnavailable) && !errors.Is(err, ErrLost) && driver.Refusal(err) == nil {
		return nil
	}
	return err
}

// Locker returns the mutex as a sync.Locker for code that knows nothing else. Its Lock waits as long as ctx allows and
// panics on an error; its Unlock panics if the hold was lost. As with sync.Mutex, each Lock is an owner of its own: an
// owner in ctx does not re-enter. There is no loss signal, so prefer Do.
func (m *Mutex) Locker(ctx context.Context) sync.Locker {
	mustBe(given(ctx))
	return &locker{m: m, ctx: context.WithValue(ctx, ownerKey{}, (*owner)(nil))}
}

type locker struct {
	m     *Mutex
	ctx   context.Context //nolint:containedctx // sync.Locker has no parameter to take it from
	lease *Lease          // written by who holds the lock, so it needs no guard of its own
}

// Lock panics on an error: the interface leaves no other way.
func (l *locker) Lock() {
	lease, err := l.m.Lock(l.ctx)
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
	if err := lease.unlockInTime(l.ctx); err != nil && (errors.Is(err, ErrLost) || driver.Refusal(err) == nil) {
		panic(err)
	}
}
