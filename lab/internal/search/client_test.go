package search

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
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

// option is what may happen next.
type option struct {
	name  string
	fault bool
	do    func()
}

// options returns what may happen next, in an order that every run has.
func (w *world) options(faults int) []option {
	w.mu.Lock()
	defer w.mu.Unlock()
	waiting := slices.SortedFunc(slices.Values(w.pending), func(a, b *request) int {
		return cmp.Or(cmp.Compare(a.who, b.who), cmp.Compare(a.op, b.op))
	})
	var all, harm []option
	for _, r := range waiting {
		name := nameOf(r.who) + " " + r.op
		all = append(all, option{name, false, func() { w.let(r, carried) }})
		if r.op != "work" {
			harm = append(harm, option{name + ", answer lost", true, func() { w.let(r, lost) }})
		}
	}
	for who := range realClients {
		if w.over[who] {
			continue
		}
		harm = append(harm, option{nameOf(who) + " dies", true, func() { w.kill(who) }})
		if w.inside[who] != nil && !w.cut[who] {
			harm = append(harm, option{nameOf(who) + " is cut off", true, func() { w.cutOff(who) }})
		}
	}
	harm = append(harm, option{"time passes", true, func() { time.Sleep(2 * realLease) }})
	if faults == 0 {
		return all
	}
	return append(all, harm...)
}

// let decides about a request.
func (w *world) let(r *request, v verdict) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if i := slices.Index(w.pending, r); i >= 0 {
		w.pending = slices.Delete(w.pending, i, i+1)
		r.let <- v
	}
}

// kill ends a client: nothing of it arrives any more.
func (w *world) kill(who int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.dead[who], w.inside[who] = true, nil
	for _, r := range w.pending {
		if r.who == who {
			r.let <- failed
		}
	}
	w.pending = slices.DeleteFunc(w.pending, func(r *request) bool { return r.who == who })
}

func (w *world) cutOff(who int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.cut[who] = true
}

// believers returns how many clients trust their hold.
func (w *world) believers() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	n := 0
	for _, l := range w.inside {
		if l != nil && l.Err() == nil {
			n++
		}
	}
	return n
}

// done reports whether all programs are over.
func (w *world) done() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for who := range realClients {
		if !w.over[who] {
			return false
		}
	}
	return true
}

// schedule runs the schedule that choices name, and the first option wherever they end. It returns how many options
// there were at each move, what was chosen, and what was wrong.
func schedule(
	ctx context.Context, trust, faults int, choices []int,
) (widths, chosen []int, told []string, wrong string) {
	w := &world{root: memlock.New(nil), trust: trust}
	var clients []*interlock.Client
	var links []*gated
	for who := range realClients {
		link := &gated{w.root.Peer(), w, who}
		c, err := interlock.New(link, &interlock.Options{Lease: realLease, ClientName: nameOf(who)})
		if err != nil {
			return nil, nil, nil, err.Error()
		}
		clients, links = append(clients, c), append(links, link)
		go w.client(ctx, who, c)
	}
	for wrong == "" {
		synctest.Wait()
		if w.believers() > 1 {
			wrong = "two are inside"
			break
		}
		if w.done() {
			break
		}
		all := w.options(faults)
		if len(all) == 0 { // a client waits before it asks again
			time.Sleep(realLease / 4)
			continue
		}
		at := 0
		if n := len(chosen); n < len(choices) {
			at = min(choices[n], len(all)-1)
		}
		widths, chosen, told = append(widths, len(all)), append(chosen, at), append(told, all[at].name)
		if all[at].fault {
			faults--
		}
		all[at].do()
	}
	if refused := w.end(ctx, clients, links); wrong == "" {
		wrong = refused
	}
	return widths, chosen, told, wrong
}

// end lets everything through, has a newcomer take the lock when all leases are over, and closes what there is.
func (w *world) end(ctx context.Context, clients []*interlock.Client, links []*gated) (wrong string) {
	w.mu.Lock()
	w.free = true
	for _, r := range w.pending {
		r.let <- carried
	}
	w.pending = nil
	w.mu.Unlock()
	time.Sleep(3 * realLease)
	late := w.root.Peer()
	c, err := interlock.New(late, nil)
	if err != nil {
		return err.Error()
	}
	if _, err := c.TryLock(ctx, key); err != nil {
		wrong = fmt.Sprintf("the lock stays closed: %v", err)
	}
	_ = c.Close()
	_ = late.Close()
	for i := range clients {
		_ = clients[i].Close() // of a dead one nothing can be confirmed
		_ = links[i].Close()
	}
	_ = w.root.Close()
	return wrong
}

// searchClient runs all schedules with so many faults, until one goes wrong.
func searchClient(t *testing.T, trust, faults int) (runs int, wrong string) {
	t.Helper()
	for choices := []int{}; ; runs++ {
		var widths, chosen []int
		synctest.Test(t, func(t *testing.T) {
			var told []string
			if widths, chosen, told, wrong = schedule(t.Context(), trust, faults, choices); wrong != "" {
				wrong += ": " + strings.Join(told, "; ")
			}
		})
		if wrong != "" {
			return runs, wrong
		}
		last := len(widths) - 1
		for last >= 0 && chosen[last]+1 >= widths[last] {
			last--
		}
		if last < 0 {
			return runs + 1, ""
		}
		choices = slices.Concat(chosen[:last], []int{chosen[last] + 1})
	}
}

func TestSearch_OfTheClientItself_FindsNothing(t *testing.T) {
	faults := 2
	if testing.Short() {
		faults = 1
	}
	runs, wrong := searchClient(t, 1, faults)
	if wrong != "" {
		t.Error(wrong)
	}
	if t.Logf("%d schedules with at most %d faults", runs, faults); runs < 100 {
		t.Errorf("only %d schedules were run", runs)
	}
}

func TestSearch_OfAClientThatTrustsTooLong_FindsTwoInside(t *testing.T) {
	runs, wrong := searchClient(t, 4, 2)
	if !strings.HasPrefix(wrong, "two are inside") {
		t.Errorf("in %d schedules nothing was found but %q", runs, wrong)
	}
}
