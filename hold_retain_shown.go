package interlock

import "github.com/interlock-go/interlock/internal/trust"
import "time"

// Retention on an engine with sessions (see hold_retain.go). A retained grant lasts as long as the session there, so a
// renewal shortens nothing. It shows operators that nobody holds the lock, and later that somebody does again. Its
// answer also says whether others wait: clients of earlier versions do not call the holder.

// showDelay is how long a grant is retained before an engine with sessions shows that. It is longer than retainGrace:
// nobody waits for a lease to end, and each showing is a write.
const showDelay = time.Second

// showingDue returns when the engine is to hear next that g is retained. That is after showDelay, and then each third
// of the session's timeout to learn whether others wait. The caller holds Client.mu.
func (g *grant) showingDue(r *retained) trust.Instant {
	if g.Renewed > r.since {
		return g.Renewed.Plus(g.Window.Lease / 3)
	}
	return r.since.Plus(showDelay)
}

// showed records that the engine shows what b says. An answer that a later take-over has outdated changes nothing. The
// caller holds Client.mu.
func (g *grant) showed(b pendingRenewal) {
	g.hasSucceeded()
	g.Renewed = max(g.Renewed, b.sent)
	g.NotBefore = 0
	if !b.r.Retained && b.r.Pass == int(g.Pass) && g.retained() == nil {
		g.Shown = false
	}
}
