package sim

import (
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"
)

// checker is a property that every run must have.
type checker string

const (
	exclusion checker = "exclusion" // no two owners of a lock trust their leases at the same instant
	belief    checker = "belief"    // a hold is given up no later than the engine's lease ends
	fencing   checker = "fencing"   // no update of a fenced resource is lost
	tokens    checker = "tokens"    // tokens are unique, and grow from one acquisition to every later one
	prompt    checker = "prompt"    // every call returns within 50 ms of its context's end
	residue   checker = "residue"   // what was given back or undone is gone for good, and in the end everything is free
	liveness  checker = "liveness"  // after the faults a lock can be taken within two leases
	truthful  checker = "truthful"  // the engine never has two owners, and never renews what has ended
	steady    checker = "steady"    // without faults no hold is lost
	errorful  checker = "errors"    // every error is one that the call's documentation names
)

// report is the outcome of one run.
type report struct {
	seed       uint64
	violations []string
	red        map[checker]int
	counts     map[string]int
	log        []string
	hash       uint64
	lasted     time.Duration // simulated
}

// String tells what was wrong, the first few at most.
func (r *report) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d violations; to replay: -run 'Simulation$' -v -sim.seed=%d",
		r.seed, len(r.violations), r.seed)
	for _, v := range r.violations[:min(len(r.violations), 5)] {
		b.WriteString("\n    " + v)
	}
	return b.String()
}

// tally counts what happened, by name. It shows that a run was not idle.
type tally struct {
	mu sync.Mutex
	by map[string]int
}

func (t *tally) hit(name string) { t.add(name, 1) }

func (t *tally) add(name string, n int) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = make(map[string]int)
	}
	t.by[name] += n
}

// take adds what another has counted.
func (t *tally) take(other map[string]int) {
	for name, n := range other {
		t.add(name, n)
	}
}

// String lists the counts by name.
func (t *tally) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var names []string
	for name := range t.by {
		names = append(names, name)
	}
	slices.Sort(names)
	var b strings.Builder
	for _, name := range names {
		fmt.Fprintf(&b, "\n    %-28s %d", name, t.by[name])
	}
	return b.String()
}
