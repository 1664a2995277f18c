// Package faulty makes the way to an engine bad. It wraps any driver, and delays, loses, fails, repeats or holds up
// what goes through, as a network and a server under stress do. The wrapper keeps the optional interfaces of the
// wrapped driver. Of those that the driver lacks, the wrapper also lacks Requeuer, Converter and Watcher, and answers
// driver.ErrUnsupported for the others.
//
//	d, control := faulty.Wrap(inner, seed, faulty.Rule{Op: faulty.Renew, From: 3, Drop: faulty.Reply})
//	control.Pause() // from now on the server hangs
//
// The same seed and the same order of calls give the same faults. Everything waits on channels, so it also works in the
// virtual time of testing/synctest.
package faulty

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/internal/optional"
)

// Op names an operation.
type Op string

// The operations. Traits, Close and Diagnose are never disturbed.
const (
	Acquire Op = "acquire" // driver.Driver
	Release Op = "release" // driver.Driver
	Renew   Op = "renew"   // a batch is one operation: all its answers suffer alike
	Requeue Op = "requeue" // driver.Requeuer
	Convert Op = "convert" // driver.Converter
	Adopt   Op = "adopt"   // driver.Adopter
	Resize  Op = "resize"  // driver.Resizer
	Locks   Op = "locks"   // driver.Inspector
	Break   Op = "break"   // driver.Breaker
	Look    Op = "look"    // driver.Looker

	AcquireAll Op = "acquire all" // one operation, for the first of its locks as for the others

	Watch      Op = "watch"       // each change that is told, of which Drop counts and nothing else
	SetLatch   Op = "set latch"   // driver.Latcher
	CountDown  Op = "count down"  // driver.Latcher
	LatchCount Op = "latch count" // driver.Latcher
	CondWait   Op = "cond wait"   // driver.Conder
	CondSignal Op = "cond signal" // driver.Conder
)

// Part is a half of an operation.
type Part uint8

const (
	// Request is the way there: what is lost on it never happens.
	Request Part = iota + 1
	// Reply is the way back: what is lost on it has happened.
	Reply
)

// Rule says which calls suffer what. The zero value disturbs nothing. A Rule is never changed by this package.
type Rule struct {
	// Which calls: those of one operation and one lock; an empty field means every one.
	Op   Op
	Name string // of the lock

	From   int     // from the n-th such call on, counted from 1; 0 means 1
	Count  int     // how many of them; 0 means all
	Chance float64 // each with this probability; 0 means always

	// What they suffer. Everything that is set happens, in this order.
	Before time.Duration // how long the request travels
	Err    error         // the call fails with it, and is never made
	Drop   Part          // this part is lost; the caller gets a *driver.UnavailableError
	Hang   bool          // with Drop: the caller gets nothing, so the call ends with its context
	After  time.Duration // how long the reply travels
	Copy   time.Duration // a copy of the request arrives this long after the reply; its own reply is lost

	// Standing makes it a rule of the network and not of a call: it loses the part that Drop says of every call that it
	// covers as long as it is among the rules, also of calls that were under way before. Err is then the cause that the
	// caller is told. The other fields have no effect. A standing rule does not keep another one from deciding.
	Standing bool

	_ struct{}
}

// Wrap returns a driver that behaves as d does through a network with the given faults, and the Control of the faults.
// The first rule that covers a call decides, beside those that are Standing. Closing the driver ends copies that are
// under way and closes d.
func Wrap(d driver.Driver, seed uint64, rules ...Rule) (driver.Driver, *Control) {
	c := newControl(seed, rules)
	return optional.Show(&wrapped{d: optional.Complete(d), c: c}, optional.Of(d)), c
}

// What a test can change while the wrapped driver works: rules, and a server that hangs. wrapped.go asks here for each
// call.

// Control changes the faults of a wrapped driver while it works. Its methods may be called from any goroutine.
type Control struct {
	// Guards what follows. Nothing is called and nobody waits under it.
	mu      sync.Mutex
	rules   []*counted
	random  *rand.Rand    // from the seed, so that the same calls suffer the same
	calls   map[Op]int    // how many calls there were of each operation
	resumed chan struct{} // closed by Resume; nil while the server does not hang
	held    []func()      // callbacks that came while it hung
	closed  bool          // no further copies

	copies sync.WaitGroup  // copies that are under way
	ctx    context.Context //nolint:containedctx // of the copies, which belong to no call
	cancel context.CancelFunc
}

// counted is a rule and how many calls have met it.
type counted struct {
	Rule
	met int
}

// newControl returns a Control with the given rules.
func newControl(seed uint64, rules []Rule) *Control {
	c := &Control{random: rand.New(rand.NewPCG(seed, 0)), calls: make(map[Op]int)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	c.Rules(rules...)
	return c
}

// Rules replaces all rules. Calls that are under way are not affected, but by those that are Standing.
func (c *Control) Rules(rules ...Rule) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rules = nil
	for _, r := range rules {
		c.rules = append(c.rules, &counted{Rule: r})
	}
}

// Calls returns how many calls of op there were, failed ones included. Of a batch of renewals each counts.
func (c *Control) Calls(op Op) int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls[op]
}

// Pause makes the server hang: until Resume no call begins, and no reply and no callback comes back. Calls end when
// their contexts do.
func (c *Control) Pause() {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.resumed == nil {
		c.resumed = make(chan struct{})
	}
}

// Resume lets everything go on that Pause has held up. The callbacks come first, because what they tell has happened
// before any reply that waits.
func (c *Control) Resume() {
	// Callbacks run without mu and may bring more of them, so it begins again until none is held.
	for {
		c.mu.Lock()
		held := c.held
		c.held = nil
		if len(held) == 0 {
			if c.resumed != nil {
				close(c.resumed)
			}
			c.resumed = nil
			c.mu.Unlock()
			return
		}
		c.mu.Unlock()
		for _, f := range held {
			f()
		}
	}
}

// rule counts a call, of one or several locks, and returns what it suffers: the first rule that covers it decides.
func (c *Control) rule(op Op, names ...string) Rule {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls[op]++
	if op == Renew {
		c.calls[op] += len(names) - 1
	}
	for _, r := range c.rules {
		if !r.Standing && r.covers(op, names) && r.isDue(c.random) {
			return r.Rule
		}
	}
	return Rule{}
}

// lost returns why a part of a call is lost by a standing rule, or nil.
func (c *Control) lost(op Op, names []string, part Part) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, r := range c.rules {
		if r.Standing && r.Drop == part && r.covers(op, names) {
			return cmp.Or(r.Err, errDropped)
		}
	}
	return nil
}

// covers reports whether r is about such a call.
func (r *counted) covers(op Op, names []string) bool {
	if r.Op != "" && r.Op != op {
		return false
	}
	for _, name := range names {
		if name == r.Name {
			return true
		}
	}
	return r.Name == ""
}

// isDue counts a call that r covers and reports whether it is one that suffers.
func (r *counted) isDue(random *rand.Rand) bool {
	r.met++
	from := max(r.From, 1)
	if r.met < from || r.Count > 0 && r.met >= from+r.Count {
		return false
	}
	return r.Chance == 0 || random.Float64() < r.Chance
}

// gate returns when the server does not hang, or with the context's error.
func (c *Control) gate(ctx context.Context) error {
	for {
		c.mu.Lock()
		resumed := c.resumed
		c.mu.Unlock()
		if resumed == nil {
			return nil
		}
		select {
		case <-resumed: // look again: it may have been paused once more
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// tell calls f now, or after Resume if the server hangs.
func (c *Control) tell(f func()) {
	c.mu.Lock()
	if c.resumed != nil {
		c.held = append(c.held, f)
		c.mu.Unlock()
		return
	}
	c.mu.Unlock()
	f()
}

// later runs f after d, unless the driver is closed before. It is how a copy of a request arrives late.
func (c *Control) later(d time.Duration, f func(context.Context)) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		return // Add must not meet Wait
	}
	c.copies.Add(1)
	go func() { // ends with f, or at close, which waits for it
		defer c.copies.Done()
		if sleep(c.ctx, d) == nil && c.gate(c.ctx) == nil {
			f(c.ctx)
		}
	}()
}

// close ends the copies that are under way and waits for them.
func (c *Control) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.cancel()
	c.copies.Wait()
}

// sleep waits for d or returns the context's error.
func sleep(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// unavailable is the error of a call that got no answer.
func unavailable(op Op, names []string, cause error) error {
	name := ""
	if len(names) > 0 {
		name = names[0]
	}
	return &driver.UnavailableError{Op: string(op), Name: name, Err: cause}
}
