package interlock

import (
	"github.com/interlock-go/interlock/internal/grants"
)

// What ends by itself, or because the engine says so: the trust in a grant, and the time of a hold. The scheduler
// (core_renew.go) and every look at a lease call expire; the driver calls lostByEngine. hold_end.go tells the
// holder.

// lostByEngine is Request.Lost: the engine reports that it took the hold back. The driver calls it from a goroutine of
// its own, perhaps before Acquire has returned. Then only a mark is left, because nobody has the hold yet.
func (g *grant) lostByEngine(reason LostReason, cause error) {
	c := g.m.client()
	c.lock()
	defer c.unlockInside()
	switch g.Phase {
	case grants.Requested:
		g.Phase = grants.Revoked
	case grants.Live, grants.Abandoned: // an abandoned one may still have holds
		c.lose(g, reason, cause)
	}
}
