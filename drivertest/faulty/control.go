package faulty

import (
	"cmp"
	"context"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

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
