package interlock

import (
	"strconv"

	"github.com/interlock-go/interlock/driver"
)

// What a request to the engine says. acquire_fetch.go and acquire_local.go send it; the id that is made here names the
// hold until it is released (core_grant.go).

// request describes to the engine a hold on m for o. Only a mutex of an anonymous owner asks for a block of tokens. The
// engine re-enters named owners by itself, and readers, writers and permits never pass on inside the process.
func (m *lock) request(id string, o *owner) driver.Request {
	c := m.client()
	r := driver.Request{
		Key: m.key(), ID: id, Owner: o.id, Named: o.named,
		Client: c.opts.ClientName, Label: m.p.label,
		Mode: driver.Exclusive, Limit: 1, Weight: 1, Lease: m.p.Lease, LockDelay: m.p.LockDelay, Tokens: 1,
	}
	if m.p.share.direct {
		r.Mode, r.Limit, r.Weight = m.p.share.mode, m.p.share.limit, m.p.share.weight
		return r
	}
	if !o.named && !m.p.NoRenew && !m.p.single && c.opts.LocalHandoffs > 0 {
		r.Tokens = min(c.opts.LocalHandoffs, firstPasses) + 1
		if m.p.Retain > 0 {
			r.Tokens = retainTokens
		}
	}
	return r
}

// askForRecalls asks the engine to report when another client wants g, if the engine can. It does so for every
// exclusive hold of an anonymous owner, because Lease.Wanted shows it. Retains marks those that the client may keep
// after their Unlock.
func (g *grant) askForRecalls(r *driver.Request) {
	c := g.m.c
	if c.recalls && r.Mode == driver.Exclusive && !r.Named {
		r.Wanted, r.Retains = g.wantedByOther, g.m.p.Retain > 0
		g.Recallable = r.Retains
	}
}

// newID returns a request id. It is unique for ever: a random part for each client, and a counter. Ids are never
// reused, because a late copy of an old request would then act on a new hold.
func (c *Client) newID() string {
	var space [40]byte // larger than any id, so that there is one allocation and not three
	return string(strconv.AppendUint(append(append(space[:0], c.id...), '.'), c.lastID.Add(1), 32))
}

// requestID returns the id for a request that w makes. The first request of an anonymous owner uses the owner's own id,
// so that a hold keeps one string for both. Repetitions need a new one. The caller holds Client.mu.
func (w *waiter) requestID() string {
	if !w.fresh {
		return w.lease.m.client().newID()
	}
	w.fresh = false
	return w.lease.owner.id
}
