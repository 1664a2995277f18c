package shell

import "github.com/interlock-go/interlock/internal/core"

// Retention: after an Unlock for which nobody waits, the client keeps the engine's grant without an owner. A Lock of
// this client takes the grant over without a message. It gets the next token and the trust that is left, like a pass
// inside the process. When another client asks the engine for the lock, the engine tells this one (Request.Wanted),
// which gives the grant back. release.go retains; acquire.go takes over; internal/core/retain.go has what differs with
// sessions.
//
// A client that dies while it retains a grant keeps others out for nothing, until the engine ends the lease. So the
// first renewal after retainGrace gives the grant a short lease (Renewal.Retained), whatever the hold's lease was.
// Chubby's clients, GPFS and NFS delegations cache locks in this way. internal/handoff has the model, and docs/adr/0045
// the five rules: without any one of them two owners are inside, or one waits for too long.

// wantedByOther is Request.Wanted: another client wants the lock. A retained grant is released at once. A grant that is
// held is marked, so that its Unlock does not retain it. The driver may call this from any goroutine, repeatedly, and
// before Acquire has returned.
func wantedByOther(g *core.EngineHold) {
	c := ClientOfLock(g.Lock)
	c.Lock()
	defer c.unlockInside()
	if !g.Wanted {
		for l := range g.Holds.All(core.OfGrant) {
			tellWanted(l)
		}
	}
	TellRecalled(g)
	g.Recalled, g.Wanted = true, true
	if r := g.Retained(); r != nil {
		c.Machine.Retention.Recall(g.Lock)
		c.Machine.ReleaseRetained(g)
		c.Machine.AskFor(g.Lock)
	}
}
