package interlock

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
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
	if err := checkCall(s.checkMade(), ctx); err != nil {
		return err
	}
	now := s.one.Load()
	c, key := now.client(), now.key()
	if now.err != nil {
		return now.err
	}
	if err := validateLimit(now.name, limit); err != nil {
		return err
	}
	resizer, err := c.resizer()
	if err != nil {
		return wrap("resize", key, err)
	}
	s.resizes.begin()
	defer s.resizes.end()
	err = c.persist(ctx, "resize", key, func(ctx context.Context) error { return resizer.Resize(ctx, key, limit) })
	if err != nil {
		return err
	}
	p := now.params
	p.share.limit = limit
	s.one.Store(newPermit(c, now.name, p))
	return nil
}

// resized returns m with the limit that its semaphore has now, if err is a conflict that one of its own changes may
// have made; else nil. Programs that ask with a limit of their own are told of the conflict.
//
// A try waits no longer for a Resize under way than for a recall: the engine may not answer that for long.
func (m *lock) resized(ctx context.Context, since int, try bool, err error) *lock {
	r := m.p.share.resizes
	if r == nil || !errors.Is(err, ErrConflict) || !driver.IsDefinite(err) {
		return nil
	}
	if try {
		bounded, stop := context.WithTimeout(ctx, recallWait)
		defer stop()
		ctx = bounded
	}
	// The limit may also have changed after m was made and before the request was.
	if crossed := r.crossed(ctx, since); ctx.Err() != nil || !crossed && r.limit() == m.p.share.limit {
		return nil
	}
	p := *m.p
	p.share.limit = r.limit()
	return &newPermit(m.client(), m.name, p).lock
}

// resizer returns the engine as a Resizer, or says why it cannot resize.
func (c *Client) resizer() (driver.Resizer, error) {
	resizer, can := c.d.(driver.Resizer)
	reason, lacks := c.traits.Lacking(driver.Resizing)
	switch {
	case lacks:
		return nil, unsupported(c.traits, reason)
	case !can:
		return nil, unsupported(c.traits, "its driver is no driver.Resizer")
	}
	return resizer, nil
}
