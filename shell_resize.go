package interlock

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// resizedLock returns m with the limit that its semaphore has now, if err is a conflict that one of its own changes may
// have made; else nil. Programs that ask with a limit of their own are told of the conflict.
//
// A try waits no longer for a Resize under way than for a recall: the engine may not answer that for long.
func resizedLock(ctx context.Context, m *core.Lock, since int, try bool, err error) *core.Lock {
	r := m.Terms.Share.Resizes
	if r == nil || !errors.Is(err, ErrConflict) || !driver.IsDefinite(err) {
		return nil
	}
	if try {
		bounded, stop := context.WithTimeout(ctx, recallWait)
		defer stop()
		ctx = bounded
	}
	// The limit may also have changed after m was made and before the request was.
	if crossed := r.Crossed(ctx, since); ctx.Err() != nil || !crossed && r.Limit() == m.Terms.Share.Limit {
		return nil
	}
	p := *m.Terms
	p.Share.Limit = r.Limit()
	return &newPermit(clientOfLock(m), m.Name, p).lock
}

// resizer returns the engine as a Resizer, or says why it cannot resize.
func (c *Client) resizer() (driver.Resizer, error) {
	resizer, can := c.d.(driver.Resizer)
	reason, lacks := c.core.Traits.Lacking(driver.Resizing)
	switch {
	case lacks:
		return nil, core.Unsupported(c.core.Traits, reason)
	case !can:
		return nil, core.Unsupported(c.core.Traits, "its driver is no driver.Resizer")
	}
	return resizer, nil
}

// permit is how a number of permits is asked for: a lock and its options in one allocation. It does not change.
type permit struct {
	lock   core.Lock
	params core.Terms
}

// newPermit returns a permit with the options p, limit and weight included.
func newPermit(c *Client, name string, p core.Terms) *permit {
	ask := &permit{params: p}
	ask.lock.Core, ask.lock.Name, ask.lock.Terms = c.coreOf(), name, &ask.params
	return ask
}
