package interlock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// Semaphores: locks with a number of permits. internal/shell/direct.go asks for them.

// Semaphore is a lock that has a number of permits, its limit. Each acquisition takes some of them, with a lease of its
// own that is renewed. The permits of a holder that crashes come back when its lease ends. Only the [Lease] gives them
// back, once, so nobody can release more than was taken.
//
// Requests are served first come, first served: a request that waits for many permits is not overtaken by those that
// want few. A Semaphore is not re-entrant: each acquisition takes permits of its own, also under the same owner. So an
// owner that holds some and waits for more may wait for itself; take all that are needed at once. Owners that wait for
// each other get ErrDeadlock as with other locks, but only if nobody else could give back enough permits. An owner's
// own permits never count against it.
//
// The limit belongs to the lock for as long as it is in use. A request with another limit meanwhile gets ErrConflict.
// [Semaphore.Resize] changes it.
//
// A Semaphore is safe for concurrent use. The zero value cannot be used.
type Semaphore struct {
	_   core.NoCopy
	one atomic.Pointer[core.Lock] // how one permit is asked for; Resize replaces it

	resizes core.Resizes
}

// limit is that with which s asks now.
func (s *Semaphore) limit() int { return s.one.Load().Terms.Share.Limit }

// Semaphore returns the semaphore of that name, with limit permits and the given options. It asks no engine. An invalid
// name, a limit below 1, invalid options, and an engine without semaphores (ErrUnsupported, with the reason) are
// reported by its first call.
func (c *Client) Semaphore(name string, limit int, opts *LockOptions) *Semaphore {
	key := driver.Key{Kind: driver.KindSemaphore, Name: name}
	p := paramsDirect(c.in(), key, opts)
	s := &Semaphore{}
	s.resizes.Limit = s.limit
	p.Share = core.ShareMode{Direct: true, Mode: driver.Shared, Limit: limit, Weight: 1, Resizes: &s.resizes}
	if p.Err == nil {
		p.Err = validateLimit(name, limit)
	}
	s.one.Store(core.NewLock(c.in().CoreOf(), name, p))
	return s
}

func validateLimit(name string, limit int) error {
	if limit < 1 {
		return fmt.Errorf("interlock: semaphore %q: the limit %d must be at least 1", name, limit)
	}
	return nil
}

// Acquire waits until n permits are held, and returns the hold. It takes all of them or none. n must be at least 1 and
// at most the limit. If the semaphore is in use with another limit the error matches ErrConflict and names both. For
// ctx, the other errors and what is left behind see [Mutex.Lock].
//
// [Lease.Stamp] reports false unless the limit is 1: holders that are inside together have no order that a fence could
// check.
//
// It costs one round trip, and one message when it has to wait.
func (s *Semaphore) Acquire(ctx context.Context, n int) (*Lease, error) {
	return handOver(shell.Acquire(ctx, s.permits(n), false))
}

// TryAcquire is Acquire without waiting: if fewer than n permits are free, or anybody waits, the error is a *HeldError.
func (s *Semaphore) TryAcquire(ctx context.Context, n int) (*Lease, error) {
	return handOver(shell.Acquire(ctx, s.permits(n), true))
}

// permits returns how n permits are asked for. One permit, the usual number, costs no allocation.
func (s *Semaphore) permits(n int) *core.Lock {
	if err := s.checkMade(); err != nil {
		return &core.Lock{Terms: &core.Terms{Err: err}}
	}
	one := s.one.Load()
	if n == 1 {
		return one
	}
	many := core.NewLock(one.Core, one.Name, *one.Terms)
	many.Terms.Share.Weight = n
	if limit := many.Terms.Share.Limit; many.Terms.Err == nil && (n < 1 || n > limit) {
		many.Terms.Err = fmt.Errorf(
			"interlock: semaphore %q: %d permits were asked for; it must be at least 1, and at "+
				"most its limit of %d",
			many.Name,
			n,
			limit,
		)
	}
	return many
}

// Changing the limit of a semaphore that is in use. The limit stands in the engine; a Semaphore keeps what this
// client asks with.

// Resize changes the limit of the semaphore while it is in use, in one step for all clients. From then on s asks with
// the new limit. Permits that are held are never taken away: while more are held than the new limit, nothing is
// granted. Whoever waits keeps its place, and is let in if a larger limit makes room.
//
// Programs that go on asking with the old limit get ErrConflict for as long as the semaphore is in use. Those that
// hold or wait already do not. Requests of s itself do not either: what crosses a Resize of s is asked again. So if
// the limit stands in a configuration, change it there first. Resize is for a limit that must change before the
// semaphore is next idle. A semaphore that nobody uses has no limit to change: the next request brings its own.
//
// Resize returns ErrConflict, and nothing changes, while anybody waits for more permits than the new limit. If the
// engine does not answer (ErrUnavailable) the limit may have been changed; call Resize again. Of two calls at once
// either may come last, in the engine and in s: then the next request gets ErrConflict. Engines that keep no limit of
// their own refuse with ErrUnsupported and the reason. It costs one round trip.
func (s *Semaphore) Resize(ctx context.Context, limit int) error {
	if err := shell.CheckCall(s.checkMade(), ctx); err != nil {
		return err
	}
	now := s.one.Load()
	c, key := shell.ClientOf(now), now.Key()
	if now.Terms.Err != nil {
		return now.Terms.Err
	}
	if err := validateLimit(now.Name, limit); err != nil {
		return err
	}
	resizer, err := c.Resizer()
	if err != nil {
		return shell.Wrap("resize", key, err)
	}
	s.resizes.Begin()
	defer s.resizes.End()
	err = c.Persist(ctx, "resize", key, func(ctx context.Context) error { return resizer.Resize(ctx, key, limit) })
	if err != nil {
		return err
	}
	p := *now.Terms
	p.Share.Limit = limit
	s.one.Store(core.NewLock(now.Core, now.Name, p))
	return nil
}

var errNoSemaphore = errors.New("interlock: Semaphore was not made by Client.Semaphore")

func (s *Semaphore) checkMade() error {
	if s == nil || s.one.Load() == nil {
		return errNoSemaphore
	}
	return nil
}
