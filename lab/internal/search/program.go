package search

import (
	"context"
	"errors"
	"slices"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit"
	"github.com/interlock-go/interlock/lab/internal/play"
)

// Client is what a program runs on: a client on paper while the search looks for schedules, and a client of a real
// server, which stands still before each command, in a replay.
type Client interface {
	exhibit.Conn
	Name() string
	Now() time.Time // the client's own clock
	Leave()         // it has done what it wanted the lock for

	// Enter tells that the client believes to have the lock, until an instant of its own clock: one that looks at its
	// clock before it acts. The zero time is no end, as in all exhibits.
	Enter(until time.Time)
}

// Program is what one client does: it takes the lock with an exhibit's own code, works, and releases it. It ends at the
// first error.
type Program func(ctx context.Context, c Client) error

// errRefused ends the program of a client that did not get the lock.
var errRefused = errors.New("refused")

// work does what a client wants the lock for, if it was told that it has it.
func work(ctx context.Context, c Client, got bool, err error) error {
	switch {
	case err != nil:
		return err
	case !got:
		return errRefused
	}
	c.Enter(time.Time{})
	_, err = c.Do(ctx, "SET", goods, c.Name())
	c.Leave()
	return err
}

// answer is what a client was told by one command, and what its clock said when that was.
type answer struct {
	reply any
	err   error
	clock int64
}

// view is what a client is about to do, as its program says.
type view struct {
	next    []string // the command that it sends next; nil if its program has ended
	inside  bool
	until   int64 // by its clock; 0 for no end
	refused bool
	looked  uint64 // when it looked at its clock: bit 0 before the first answer, bit n after the n-th
}

// paper is a client on paper. It answers from the client's past, and stops the program where that ends.
type paper struct {
	name  string
	start int64 // what its clock said when it began
	past  []answer
	heard int // of its past
	view
}

var _ Client = (*paper)(nil)

// errParked stops a program at a command that was not answered yet.
var errParked = errors.New("not answered yet")

// errLost is what a client gets whose answer is lost.
var errLost = errors.New("the answer is lost")

// look runs a program up to the end of a client's past.
func look(ctx context.Context, program Program, p *paper) view {
	err := program(ctx, p)
	p.refused = errors.Is(err, errRefused)
	return p.view
}

// Name returns the client's name.
func (p *paper) Name() string { return p.name }

// Now is the clock as of the last answer: what follows it is done at once, and then the client stands still.
func (p *paper) Now() time.Time {
	if p.next == nil {
		p.looked |= 1 << p.heard
	}
	if p.heard == 0 {
		return time.UnixMilli(p.start)
	}
	return time.UnixMilli(p.past[p.heard-1].clock)
}

// Enter is undone by Leave. Whatever a program does after it was stopped does not count.
func (p *paper) Enter(until time.Time) {
	if p.next != nil {
		return
	}
	if p.inside, p.until = true, 0; !until.IsZero() {
		p.until = until.UnixMilli()
	}
}

// Leave ends what Enter began.
func (p *paper) Leave() {
	if p.next == nil {
		p.inside = false
	}
}

// Do answers from the past, or stops the program.
func (p *paper) Do(_ context.Context, args ...string) (any, error) {
	if p.heard < len(p.past) {
		a := p.past[p.heard]
		p.heard++
		return a.reply, a.err
	}
	if p.next == nil {
		p.next = slices.Clone(args)
	}
	return nil, errParked
}

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
