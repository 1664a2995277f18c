package shell

import (
	"strconv"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// What a request to the engine says. acquire_fetch.go and acquire_local.go send it; the id that is made here names the
// hold until it is released (internal/core/enginehold.go).

// firstPasses is how many passes are asked for at first. A client that has used them up while others wait asks for
// all of LocalHandoffs the next time. The tokens of a block that are not used run ahead of the engine's clock.
// Until the clock has caught up, at one microsecond for each, acquisitions get a single token.
const firstPasses = 63

// driverRequest describes to the engine a hold on m for o. Only a mutex of an anonymous owner asks for a block of tokens. The
// engine re-enters named owners by itself, and readers, writers and permits never pass on inside the process.
func DriverRequest(m *core.Lock, id string, o *core.Owner) driver.Request {
	c := ClientOfLock(m)
	r := driver.Request{
		Key: m.Key(), ID: id, Owner: o.ID, Named: o.Named,
		Client: c.Config.ClientName, Label: m.Terms.Label,
		Mode: driver.Exclusive, Limit: 1, Weight: 1, Lease: m.Terms.Lease, LockDelay: m.Terms.LockDelay, Tokens: 1,
	}
	if m.Terms.Share.Direct {
		r.Mode, r.Limit, r.Weight = m.Terms.Share.Mode, m.Terms.Share.Limit, m.Terms.Share.Weight
		return r
	}
	if !o.Named && !m.Terms.NoRenew && !m.Terms.Single && c.Config.LocalHandoffs > 0 {
		r.Tokens = min(c.Config.LocalHandoffs, firstPasses) + 1
		if m.Terms.Retain > 0 {
			r.Tokens = core.RetainTokens
		}
	}
	return r
}

// askForRecalls asks the engine to report when another client wants g, if the engine can. It does so for every
// exclusive hold of an anonymous owner, because Lease.Wanted shows it. Retains marks those that the client may keep
// after their Unlock.
func askForRecalls(g *core.EngineHold, r *driver.Request) {
	c := g.Lock.Core
	if c.Recalls && r.Mode == driver.Exclusive && !r.Named {
		r.Wanted, r.Retains = func() { wantedByOther(g) }, g.Lock.Terms.Retain > 0
		g.Recallable = r.Retains
	}
}

// newID returns a request id. It is unique for ever: a random part for each client, and a counter. Ids are never
// reused, because a late copy of an old request would then act on a new hold.
func (c *Client) NewID() string {
	var space [40]byte // larger than any id, so that there is one allocation and not three
	return string(strconv.AppendUint(append(append(space[:0], c.ID...), '.'), c.lastID.Add(1), 32))
}

// requestID returns the id for a request that w makes. The first request of an anonymous owner uses the owner's own id,
// so that a hold keeps one string for both. Repetitions need a new one. The caller holds Machine.Mu.
func requestID(w *core.Waiter) string {
	if !w.Fresh {
		return ClientOfLock(w.Hold.Lock).NewID()
	}
	w.Fresh = false
	return w.Hold.Owner.ID
}
