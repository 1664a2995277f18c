package search

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// This file searches interlock's client itself, in virtual time, on the engine in memory: two clients, each of which
// takes the lock, works and releases it, and every schedule of their requests with at most so many faults. Each
// schedule is run from the beginning, because a client cannot be copied.

const (
	realLease   = 4 * time.Second
	realClients = 2
)

// verdict is what becomes of a request.
type verdict int

const (
	carried verdict = iota
	lost            // carried out, but its answer is lost
	failed
)

// request waits for the director: a client's request to its engine, or the end of its work.
type request struct {
	who int
	op  string
	let chan verdict
}

// world is one schedule under way.
type world struct {
	root  *memlock.Driver
	trust int // how many times as long as the engine's lease a client trusts its hold: 1 is right

	mu      sync.Mutex // guards what follows
	pending []*request
	free    bool // nothing waits any more
	dead    [realClients]bool
	cut     [realClients]bool // its renewals do not arrive
	over    [realClients]bool
	inside  [realClients]*interlock.Lease
}

// ask waits for the director.
func (w *world) ask(ctx context.Context, who int, op string) verdict {
	r := &request{who, op, make(chan verdict, 1)}
	w.mu.Lock()
	switch {
	case w.dead[who]:
		w.mu.Unlock()
		return failed
	case w.free:
		w.mu.Unlock()
		return carried
	}
	w.pending = append(w.pending, r)
	w.mu.Unlock()
	select {
	case v := <-r.let:
		return v
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		w.pending = slices.DeleteFunc(w.pending, func(p *request) bool { return p == r })
		return failed
	}
}

// gated is a client's way to the engine.
type gated struct {
	*memlock.Driver
	w   *world
	who int
}

func (g *gated) Traits() driver.Traits {
	traits := g.Driver.Traits()
	traits.Local = false
	return traits
}

var errGate = errors.New("the schedule wants it so")

func (g *gated) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	v := g.w.ask(ctx, g.who, "acquire")
	if v == failed {
		return driver.Grant{}, &driver.UnavailableError{Op: "acquire", Name: r.Name, Err: errGate}
	}
	grant, err := g.Driver.Acquire(ctx, r)
	if v == lost {
		return driver.Grant{}, &driver.UnavailableError{Op: "acquire", Name: r.Name, Err: errGate}
	}
	grant.Lease *= time.Duration(g.w.trust)
	return grant, err
}

func (g *gated) Release(ctx context.Context, r *driver.Release) error {
	v := g.w.ask(ctx, g.who, "release")
	if v == failed {
		return &driver.UnavailableError{Op: "release", Name: r.Name, Err: errGate}
	}
	err := g.Driver.Release(ctx, r)
	if v == lost {
		return &driver.UnavailableError{Op: "release", Name: r.Name, Err: errGate}
	}
	return err
}

func (g *gated) Renew(ctx context.Context, batch []driver.Renewal, done func(i int, err error)) {
	g.w.mu.Lock()
	away := g.w.dead[g.who] || g.w.cut[g.who]
	g.w.mu.Unlock()
	if !away {
		g.Driver.Renew(ctx, batch, done)
		return
	}
	for i := range batch {
		done(i, &driver.UnavailableError{Op: "renew", Name: batch[i].Name, Err: errGate})
	}
}

// client runs one client's program.
func (w *world) client(ctx context.Context, who int, c *interlock.Client) {
	defer func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		w.over[who], w.inside[who] = true, nil
	}()
	l, err := c.TryLock(ctx, key)
	if err != nil {
		return
	}
	w.mu.Lock()
	w.inside[who] = l
	w.mu.Unlock()
	if w.ask(ctx, who, "work") == failed {
		return // it is dead
	}
	w.mu.Lock()
	w.inside[who] = nil
	w.mu.Unlock()
	_ = l.Unlock(ctx) // the lock may be lost
}
