package search

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/memlock"
)

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
