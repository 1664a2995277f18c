package shell

import (
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
)

// What ends by itself, or because the engine says so: the trust in a grant, and the time of a hold. The scheduler
// (internal/core/renew.go) and every look at a lease call expire; the driver calls lossOf. hold_end.go tells the
// holder.

// lossOf returns Request.Lost for g. Drivers keep it for as long as the hold lasts, so it keeps nothing but g alive.
func LossOf(g *core.EngineHold) func(reason driver.LostReason, cause error) {
	return func(reason driver.LostReason, cause error) { lostByEngine(g, reason, cause) }
}

// lostByEngine is told that the engine took the hold back. The driver calls it from a goroutine of its own, perhaps
// before Acquire has returned. Then only a mark is left, because nobody has the hold yet.
func lostByEngine(g *core.EngineHold, reason driver.LostReason, cause error) {
	c := ClientOfLock(g.Lock)
	c.Lock()
	defer c.unlockInside()
	switch g.Phase {
	case grants.Requested:
		g.Phase = grants.Revoked
	case grants.Live, grants.Abandoned: // an abandoned one may still have holds
		c.Machine.Lose(g, reason, cause)
	}
}
