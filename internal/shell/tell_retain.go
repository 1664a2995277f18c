package shell

import (
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
)

// What the Observer is told of retention (hold_retain.go): the end never before the beginning.

// retentionNews is what the Observer knows of one retention. Guarded by Machine.Mu.
type retentionNews struct {
	c          *Client
	e          Facts // what Retained was told
	told, over bool  // Retained has returned; the retention has ended
}

// tellRetained tells the Observer that g is retained from now on, once Machine.Mu has been given up. It returns nil if
// nobody listens. The caller holds Machine.Mu.
func TellRetained(g *core.EngineHold) *retentionNews {
	c := ClientOfLock(g.Lock)
	if o := c.Config.Observer; o.Retained == nil && o.RetentionEnded == nil {
		return nil
	}
	n := &retentionNews{c: c, e: holdFacts(g.Last)}
	c.Machine.AfterUnlock(func() {
		c.tell("Retained", c.Config.Observer.Retained, n.e)
		c.Lock()
		defer c.Unlock()
		n.told = true
		if n.over { // it ended while Retained ran, so nobody has told the end yet
			n.tellEnd()
		}
	})
	return n
}

// End tells the Observer that the retention is over, once Retained has returned. n may be nil. The caller holds
// Machine.Mu.
func (n *retentionNews) End() {
	if n == nil {
		return
	}
	n.over = true
	if n.told {
		n.tellEnd()
	}
}

// tellEnd tells the end. Of the event only what identifies the hold is left. The caller holds Machine.Mu.
func (n *retentionNews) tellEnd() {
	if ended := n.c.Config.Observer.RetentionEnded; ended != nil {
		e := n.e
		e.Waited, e.Held, e.Local = 0, 0, false
		n.c.tellLater("RetentionEnded", ended, e)
	}
}

// tellRecalled tells the Observer, once, that another client wants g. The engine may say so before anybody here has got
// g: then there is nothing to tell yet. The caller holds Machine.Mu.
func TellRecalled(g *core.EngineHold) {
	recalled := ClientOfLock(g.Lock).Config.Observer.Recalled
	if recalled == nil || g.RecallTold || g.Phase == grants.Gone || g.Holder() == nil {
		return
	}
	g.RecallTold = true
	ClientOfLock(g.Lock).tellLater("Recalled", recalled, holdFacts(g.Holder()))
}
