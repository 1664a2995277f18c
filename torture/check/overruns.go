package check

import (
	"slices"

	"github.com/interlock-go/interlock/torture/register"
)

// touches joins the requests of the register to the holds under which they were made, and keeps who wrote the plain
// numbers. It tells apart what comes of a fault and what of a holder that overruns a fixed lease on purpose: that
// happens without any fault too, and so says nothing of what the nemesis did.
type touches struct {
	holds   map[stake]*hold
	writes  map[string][]bool // by name: of each write of the plain number, whether it was an overrun
	readsAt map[stake]int     // how many writes there were when a hold read the plain number last
}

// stake is what a request says of its hold. A nonce is of one acquisition alone, but who comes back after a
// wipe may have an old token.
type stake struct {
	name  string
	token uint64
	nonce string
}

func stakeOf(e *register.Entry) stake { return stake{e.Name, e.Token, e.Nonce} }

func (r *record) touches() *touches {
	t := &touches{holds: map[stake]*hold{}, writes: map[string][]bool{}, readsAt: map[stake]int{}}
	for _, h := range r.holds {
		t.holds[stake{h.name, h.token, h.nonce}] = h
	}
	return t
}

// overruns reports whether a request came after the end of a lease that was not to be renewed. What such a holder does
// before that, or a request that arrives late of a hold that was to be renewed, is none.
func (t *touches) overruns(e *register.Entry) bool {
	h := t.holds[stakeOf(e)]
	return h != nil && h.fixed && e.At >= h.deadline
}

// plain takes in a request of a plain number. It reports whether an update was lost by it, and whether an overrun had a
// part in that: it is the write itself, or one since its writer had read.
func (t *touches) plain(e *register.Entry) (lost, overrun bool) {
	k, before := stakeOf(e), t.writes[e.Name]
	if !e.Write {
		t.readsAt[k] = len(before)
		return false, false
	}
	mine := t.overruns(e)
	t.writes[e.Name] = append(before, mine)
	if e.Value == e.Before+1 {
		return false, false
	}
	since, read := t.readsAt[k]
	return true, mine || read && slices.Contains(before[since:], true)
}

// Causes counts what happened to holders that were overtaken, by what made them stale.
type Causes struct {
	Faults   int // it was to be renewed: a fault was the cause, or a machine that stood still
	Overruns int // it was to be overrun
}

// All is the sum.
func (c Causes) All() int { return c.Faults + c.Overruns }

func (c *Causes) add(overrun bool) {
	if overrun {
		c.Overruns++
	} else {
		c.Faults++
	}
}

func (c *Causes) addAll(o Causes) {
	c.Faults += o.Faults
	c.Overruns += o.Overruns
}
