package interlock

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
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

// acquire is Lock and TryLock.
func (m *Mutex) acquire(ctx context.Context, try bool) (*Lease, error) {
	if err := m.mayAcquire(ctx); err != nil {
		return nil, err
	}
	m = m.labelled(ctx)
	at := m.c.newCall()
	o := ownerFrom(ctx)
	lease, err := m.attempt(ctx, o, try, at)
	if err != nil {
		m.tellFailed(ctx, o, at, err)
		return nil, err
	}
	m.tellAcquired(ctx, lease, at)
	return lease, nil
}

// mayAcquire refuses what no Observer can be told of. What is wrong with the name or the options, it can.
func (m *Mutex) mayAcquire(ctx context.Context) error {
	if err := m.made(); err != nil && (m == nil || m.p == nil || m.c.made() != nil) {
		return err
	}
	return given(ctx)
}

// tellAcquired tells the Observer and the log that an attempt has brought lease.
func (m *Mutex) tellAcquired(ctx context.Context, lease *Lease, at call) {
	var how Event
	at.end(&how)
	lease.tellAcquired(ctx, how)
	log := m.c.opts.Logger
	if log.Enabled(ctx, slog.LevelDebug) {
		log.LogAttrs(ctx, slog.LevelDebug, "interlock: lock acquired", slog.String("lock", m.key().Name),
			slog.String("engine", m.c.traits.Engine), slog.Uint64("token", lease.Token()),
			slog.String("owner", lease.owner.id))
	}
}

// tellFailed tells the Observer that a call of o has failed.
func (m *Mutex) tellFailed(ctx context.Context, o *owner, at call, err error) {
	e := m.event(o)
	at.end(&e)
	e.Waited, e.Err = m.c.reading().since(at.start), err
	m.c.tellFailed(ctx, e)
}

func (m *Mutex) attempt(ctx context.Context, o *owner, try bool, at call) (*Lease, error) {
	if m.p.err != nil {
		return nil, m.p.err
	}
	if m.p.share.direct {
		return m.attemptDirect(ctx, o, try, at)
	}
	lease, err := m.reenter(ctx, o)
	if lease == nil && err == nil {
		return m.take(ctx, o, try, at)
	}
	return lease, err
}

// event describes an attempt that has no lease to an Observer.
func (m *Mutex) event(o *owner) Event {
	key := m.key()
	e := Event{
		Kind: key.Kind, Name: key.Name, Class: cmp.Or(m.p.class, otherClass), Engine: m.c.traits.Engine, c: m.c,
	}
	if o != nil {
		e.Owner = o.id
	}
	return e
}

// reenter returns another hold if o has one already, and neither a hold nor an error if it has not.
func (m *Mutex) reenter(ctx context.Context, o *owner) (*Lease, error) {
	if o == nil {
		return nil, nil //nolint:nilnil // says "not held", see above
	}
	held := m.c.heldBy(o, m.key())
	if held == nil {
		return nil, nil //nolint:nilnil // says "not held", see above
	}
	if err := held.Err(); errors.Is(err, ErrLost) {
		return nil, err
	}
	if err := ctx.Err(); err != nil {
		return nil, wrap("lock", m.key(), err)
	}
	if o.named {
		return nil, nil //nolint:nilnil // the engine itself re-enters named owners
	}
	return m.c.share(ctx, held.g, o, m)
}

// share adds a hold of o to g after having refreshed the engine's lease, which also asks the engine whether g still is.
func (c *Client) share(ctx context.Context, g *grant, o *owner, m *Mutex) (*Lease, error) {
	if c.hasLeases() {
		patient, cancel := context.WithTimeout(ctx, m.p.renewal/2)
		defer cancel()
		err := c.renewNow(patient, g, m.p.lease)
		if errors.Is(err, ErrLost) {
			return nil, err
		}
		if err != nil && ctx.Err() != nil {
			return nil, unavailable("lock", m.key(), ctx.Err())
		}
		// Without an answer the window that was confirmed before still counts, and the scheduler goes on asking.
	}
	c.lock()
	defer c.unlock()
	now := c.now()
	c.expire(g, now)
	// unlocked by another goroutine of o meanwhile
	if g.phase == gone || g.holds.first == nil || g.holder().owner != o {
		return nil, nil //nolint:nilnil // says "not held", see reenter
	}
	l := m.newLease(o)
	g.admit(l, now, now, true)
	return l, nil
}

// take acquires the mutex for an owner that does not hold it.
func (m *Mutex) take(ctx context.Context, o *owner, try bool, at call) (*Lease, error) {
	c := m.c
	if err := ctx.Err(); err != nil {
		return nil, wrap("lock", m.key(), err)
	}
	if err := c.checkOwner(o); err != nil {
		return nil, err
	}
	c.lock()
	if o != nil && o.named || m.p.single {
		if try {
			lease, err := m.tryOnce(ctx, o, false, at)
			if wouldRecall(err) {
				return m.recall(ctx, o, at, err)
			}
			return lease, err
		}
		return c.joinAlone(ctx, m.newWaiter(o, at))
	}
	busy := c.queues[m.queueKey()] != nil || c.passing(m) != nil
	switch {
	case busy && try:
		if l := m.newLease(o); c.takeOver(l, at.start) {
			c.unlock()
			return l, nil
		}
		err := c.inTheWay(m)
		c.unlock()
		return m.tryBeside(o, at, err)
	case busy || !try && !c.traits.Local:
		return c.join(ctx, m.newWaiter(o, at))
	}
	lease, err := m.tryOnce(ctx, o, !try, at)
	switch {
	case !errors.Is(err, ErrHeld):
		return lease, err
	case try && wouldRecall(err):
		return m.recall(ctx, o, at, err)
	case try:
		return m.tryBeside(o, at, err)
	}
	c.lock()
	return c.join(ctx, m.newWaiter(o, at))
}

// tryOnce asks the engine for m once. waits says that the caller waits if it is refused, which is for a local engine to
// know. The caller holds Client.mu, which tryOnce gives up.
func (m *Mutex) tryOnce(ctx context.Context, o *owner, waits bool, at call) (*Lease, error) {
	if m.c.traits.Local {
		return m.tryLocal(ctx, o, waits, at)
	}
	m.c.unlock()
	return m.c.askAlone(ctx, m.newWaiter(o, at), true)
}

// checkOwner refuses owner names that no engine has to take.
func (c *Client) checkOwner(o *owner) error {
	if o == nil || !o.named {
		return nil
	}
	if reason, lacks := c.traits.Lacking(driver.NamedOwners); lacks {
		return wrap("lock as owner", driver.Key{Name: o.id}, unsupported(c.traits, reason))
	}
	return validateName("owner", o.id)
}
