package shell

import (
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/trust"
)

// shell is a client as its core sees it. It has the methods that the core calls, so that users of a Client do not.
// All are called under Machine.Mu.
type shell struct{ c *Client }

var _ core.Shell = shell{}

func (s shell) NewRequest(w *core.Waiter, try bool) *core.Request { return s.c.newRequest(w, try) }
func (s shell) NewID() string                                     { return s.c.NewID() }
func (s shell) SuspectDeadlock(o *core.Owner)                     { s.c.suspectDeadlock(o) }
func (s shell) Arm(at trust.Instant)                              { s.c.arm(at) }
func (s shell) Lost(h *core.Hold, lost *driver.LostError)         { s.c.lost(h, lost) }
func (s shell) Adopted(h *core.Hold)                              { tellAdopted(h) }
func (s shell) Retained(g *core.EngineHold) core.News             { return TellRetained(g) }
func (s shell) LeftPending(g *core.EngineHold)                    { s.c.leftPending(g) }

func (s shell) RenewalConfirmed(g *core.EngineHold, left, lease time.Duration) {
	s.c.renewalConfirmed(g, left, lease)
}

func (s shell) RenewalFailed(g *core.EngineHold, left time.Duration, again bool, err error) {
	s.c.renewalFailed(g, left, again, err)
}
