package play

import (
	"errors"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Guarded is a resource that checks stamps.
type Guarded struct {
	p     *Play
	guard fence.MemoryGuard
}

// Guarded returns a resource of the play.
func (p *Play) Guarded() *Guarded { return &Guarded{p: p} }

// Write has a process write to the resource with the stamp of its last grant, whatever became of that, as code does
// that has not looked at its lease again. It reports whether the resource took it.
func (g *Guarded) Write(c *Process) bool {
	g.p.Helper()
	err := g.guard.Do("goods", c.stamp, func() error { return nil })
	token := g.p.Token(c.stamp.Token)
	var stale *fence.StaleError
	switch {
	case errors.As(err, &stale):
		g.p.step(c.name, story.Asks,
			story.T("writes to the resource with token %s  →  refused: a newer token was here (%s)",
				"带着令牌 %s 写资源  →  被拒绝：资源见过更新的令牌（%s）", token, g.p.Token(stale.Seen.Token)))
	case err != nil:
		g.p.Fatal(err)
	default:
		g.p.step(c.name, story.Asks,
			story.T("writes to the resource with token %s  →  done", "带着令牌 %s 写资源  →  成功", token))
	}
	return err == nil
}
