package shell

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
	if r == nil || !errors.Is(err, driver.ErrConflict) || !driver.IsDefinite(err) {
		return nil
	}
	if try {
		bounded, stop := context.WithTimeout(ctx, RecallWait)
		defer stop()
		ctx = bounded
	}
	// The limit may also have changed after m was made and before the request was.
	if crossed := r.Crossed(ctx, since); ctx.Err() != nil || !crossed && r.Limit() == m.Terms.Share.Limit {
		return nil
	}
	p := *m.Terms
	p.Share.Limit = r.Limit()
	return &NewPermit(ClientOfLock(m), m.Name, p).Lock
}

// resizer returns the engine as a Resizer, or says why it cannot resize.
func (c *Client) Resizer() (driver.Resizer, error) {
	resizer, can := c.Driver.(driver.Resizer)
	reason, lacks := c.Machine.Traits.Lacking(driver.Resizing)
	switch {
	case lacks:
		return nil, core.Unsupported(c.Machine.Traits, reason)
	case !can:
		return nil, core.Unsupported(c.Machine.Traits, "its driver is no driver.Resizer")
	}
	return resizer, nil
}

// permit is how a number of permits is asked for: a lock and its options in one allocation. It does not change.
type Permit struct {
	Lock  core.Lock
	Terms core.Terms
}

// newPermit returns a permit with the options p, limit and weight included.
func NewPermit(c *Client, name string, p core.Terms) *Permit {
	ask := &Permit{Terms: p}
	ask.Lock.Core, ask.Lock.Name, ask.Lock.Terms = c.CoreOf(), name, &ask.Terms
	return ask
}
