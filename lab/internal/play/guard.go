package play

import (
	"fmt"
	"sync"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Guarded is a resource that checks stamps: it remembers the newest writer that touched it and refuses older ones.
type Guarded struct {
	p  *Play
	mu sync.Mutex
	at fence.Stamp
}

// Guarded returns a resource of the play.
func (p *Play) Guarded() *Guarded { return &Guarded{p: p} }

// check passes a stamp that is the newest, or newer.
func (g *Guarded) check(s fence.Stamp) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if s.Token < g.at.Token || s.Token == g.at.Token && s.Nonce != g.at.Nonce {
		return fmt.Errorf("stale: %d after %d", s.Token, g.at.Token)
	}
	g.at = s
	return nil
}

// Write has a process write to the resource with the stamp of its last grant, whatever became of that, as code does that
// has not looked at its lease again. It reports whether the resource took it.
func (g *Guarded) Write(c *Process) bool {
	c.p.Helper()
	err := g.check(c.stamp)
	token := c.p.Token(c.stamp.Token)
	if err != nil {
		c.p.step(c.name, story.Asks, story.T("writes to the resource with token %s  →  refused: a newer token was here (%s)",
			"带着令牌 %s 写资源  →  被拒绝：资源见过更新的令牌（%s）", token, c.p.Token(g.at.Token)))
		return false
	}
	c.p.step(c.name, story.Asks, story.T("writes to the resource with token %s  →  done", "带着令牌 %s 写资源  →  成功", token))
	return true
}
