package interlock

import (
	"context"

	"github.com/interlock-go/interlock/internal/shell"
)

// Changing the limit of a semaphore that is in use. The limit stands in the engine; semaphore.go keeps what this client
// asks with.

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
	c, key := shell.ClientOfLock(&now.Lock), now.Lock.Key()
	if now.Terms.Err != nil {
		return now.Terms.Err
	}
	if err := validateLimit(now.Lock.Name, limit); err != nil {
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
	p := now.Terms
	p.Share.Limit = limit
	s.one.Store(shell.NewPermit(c, now.Lock.Name, p))
	return nil
}
