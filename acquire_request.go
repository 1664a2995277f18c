package interlock

import (
	"strconv"

	"github.com/interlock-go/interlock/driver"
)

// request describes to the engine a hold on m for o.
func (m *Mutex) request(id string, o *owner) driver.Request {
	c := m.c
	r := driver.Request{
		Key: m.key(), ID: id, Owner: o.id, Named: o.named,
		Client: c.opts.ClientName, Label: m.p.label,
		Mode: driver.Exclusive, Limit: 1, Weight: 1, Lease: m.p.lease, LockDelay: m.p.lockDelay, Tokens: 1,
	}
	if m.p.share.direct {
		r.Mode, r.Limit, r.Weight = m.p.share.mode, m.p.share.limit, m.p.share.weight
		return r
	}
	if !o.named && !m.p.noRenew && !m.p.single && c.opts.LocalHandoffs > 0 {
		r.Tokens = min(c.opts.LocalHandoffs, firstPasses) + 1
		if m.p.retain > 0 {
			r.Tokens = retainTokens
		}
	}
	return r
}

// tells has the engine tell when another wants g, for which r asks, if it can.
func (g *grant) tells(r *driver.Request) {
	c := g.m.c
	if c.recalls && r.Mode == driver.Exclusive && !r.Named {
		r.Wanted, r.Retains = g.wantedByOther, g.m.p.retain > 0
		g.recallable = r.Retains
	}
}

// newID returns a request id: unique for ever, because the client's part is random.
func (c *Client) newID() string {
	var space [40]byte // more than any, so that there is one allocation and not three
	return string(strconv.AppendUint(append(append(space[:0], c.id...), '.'), c.lastID.Add(1), 32))
}

// requestID returns the id for a request that w makes. An anonymous owner's first request goes by the owner's own, so
// that a hold keeps one string for both. The caller holds Client.mu.
func (w *waiter) requestID() string {
	if !w.fresh {
		return w.lease.m.c.newID()
	}
	w.fresh = false
	return w.lease.owner.id
}
