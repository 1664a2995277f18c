package search

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/lab/internal/play"
)

// live is a client of a real server. It stands still before each command until the schedule has it go on.
type live struct {
	actor   *play.Actor
	line    *play.Line
	steps   *play.Stepper
	clock   func() int64
	past    []answer
	inside  bool
	killed  atomic.Bool // by the director, at whatever moment
	stopped bool        // it does not go on for now
	failed  bool        // a command has
}

var _ Client = (*live)(nil)

// newLive returns a client that runs a program on the server of an address.
func newLive(p *play.Play, program Program, name, addr string, clock func() int64) *live {
	p.Helper()
	c := &live{actor: p.Actor(name), clock: clock}
	c.line = c.actor.Line(addr, "")
	c.steps = c.actor.Stepper(func() { c.ended(program(p.Context(), c)) })
	return c
}

// Name returns the client's name.
func (c *live) Name() string { return c.actor.Name() }

// Now is the client's own clock.
func (c *live) Now() time.Time { return time.UnixMilli(c.clock()) }

// Do sends one command, when the schedule says so.
func (c *live) Do(ctx context.Context, args ...string) (any, error) {
	reply, err := c.line.Do(ctx, args...)
	c.failed = c.failed || err != nil
	if !c.killed.Load() { // the dead are told nothing
		c.past = append(c.past, answer{reply: reply, err: err})
	}
	return reply, err
}

// Enter tells that the client believes to have the lock.
func (c *live) Enter(time.Time) {
	c.inside = true
	c.actor.Believes(true, "has got it, and begins to work.", "拿到了锁，开始干活。")
}

// Leave tells that it has done its work.
func (c *live) Leave() {
	if c.inside = false; !c.failed {
		c.actor.Believes(false, "has done its work.", "干完了活。")
	}
}

// ended tells how the program has ended.
func (c *live) ended(err error) {
	switch {
	case c.killed.Load():
	case errors.Is(err, errRefused):
		c.actor.Says("is refused.", "被拒绝。")
	case c.failed:
		c.actor.Believes(false, "has got no answer, and gives up.", "没有等到应答，放弃了。")
	case err != nil:
		c.actor.Says("is told that the lock was not its own any more.", "被告知锁已经不是自己的了。")
	default:
		c.actor.Says("has released the lock, as it believes.", "认为自己已经释放了锁。")
	}
}
