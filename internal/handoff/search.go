package handoff

import (
	"fmt"
	"hash/maphash"
	"strings"
)

// Fault is what may be wrong with a state; the empty Fault is a state with nothing wrong.
type Fault string

// The faults that the models look for.
const (
	TwoInside     Fault = "two holders: two owners believe to be inside at once"
	Orphan        Fault = "orphan: the engine holds the lock for a request that its client has done with"
	LostWaiter    Fault = "lost waiter: nothing fails any more, and yet a living waiter is not served in time"
	FalseLoss     Fault = "false loss: a holder is put out although the engine still has the lock for it"
	TokenNotNewer Fault = "token not newer: a token is handed out that is not larger than an earlier one"
	OutOfOrder    Fault = "out of order: a waiter is overtaken of whom the engine has always heard in time"
)

// Event names one step of a model. What its fields mean is up to the model, which turns it into a sentence by Tell.
type Event struct {
	What action
	Who  uint8 // the client or activity that acts, if any
	Msg  msg   // the message that is sent, delivered or lost, if any
}

// Model is a transition system: one start, the steps possible in each state, and a judgement of each state. S must be
// canonical, meaning that two values which differ stand for situations which differ.
type Model[S comparable] interface {
	Start() S
	Next(s S, visit func(Event, S))
	Check(s S) Fault
	Tell(from S, e Event, to S) string
}

// Symmetric is a Model whose clients are interchangeable. Canon renames them so that states which differ in names only
// become the same one; it may do so imperfectly, at the cost of time.
type Symmetric[S comparable] interface {
	Canon(s S) S
}

// Result is what a search has found.
type Result struct {
	States   int      // different states seen
	Steps    int      // transitions followed
	Depth    int      // length of the longest shortest path
	Complete bool     // every reachable state was seen, or a fault ended the search
	Fault    Fault    // empty if no state is at fault
	Story    []string // a shortest way to the fault, one sentence a step
}

// String returns the counts, and the story if there is one.
func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%d states, %d transitions, depth %d", r.States, r.Steps, r.Depth)
	for i, sentence := range r.Story {
		fmt.Fprintf(&b, "\n%3d. %s", i+1, sentence)
	}
	if r.Fault != "" {
		fmt.Fprintf(&b, "\n  => %s", r.Fault)
	}
	return b.String()
}

// Search visits the states of m breadth first until one is at fault, all have been seen, or limit is reached. The
// search is deterministic, and the story of a fault is as short as any.
func Search[S comparable](m Model[S], limit int) Result {
	v := newVisited[S]()
	canon := canonOf(m)
	r := Result{Complete: true}
	at := func(s S, parent int32) bool {
		if s = canon(s); !v.add(s, parent) {
			return false
		}
		r.Fault = m.Check(s)
		return r.Fault != ""
	}
	found := at(m.Start(), -1)
	end := 1 // index of the first state of the next depth
	for i := 0; i < len(v.states) && !found; i++ {
		if i == end {
			r.Depth++
			end = len(v.states)
		}
		if len(v.states) >= limit {
			r.Complete = false
			break
		}
		m.Next(v.states[i], func(_ Event, to S) {
			if !found {
				r.Steps++
				found = at(to, int32(i))
			}
		})
	}
	r.States = len(v.states)
	if found {
		r.Story = story(m, v)
		r.Depth = len(r.Story)
	}
	return r
}

// canonOf returns m's renaming, or none.
func canonOf[S comparable](m Model[S]) func(S) S {
	if symmetric, ok := m.(Symmetric[S]); ok {
		return symmetric.Canon
	}
	return func(s S) S { return s }
}

// story retells the way to the state that was added last. Only parents are stored, not events, which halves the memory
// of a search; so each step is looked for again among those that are possible. It walks along states as they are, not
// renamed, so that a client keeps its name from the first sentence to the last.
func story[S comparable](m Model[S], v *visited[S]) []string {
	var path []int32
	for i := int32(len(v.states) - 1); i >= 0; i = v.parents[i] {
		path = append(path, i)
	}
	canon, from := canonOf(m), m.Start()
	var told []string
	for i := len(path) - 2; i >= 0; i-- {
		sentence, next := "", from
		for _, from := range []S{from, v.states[path[i+1]]} {
			m.Next(from, func(e Event, to S) {
				if sentence == "" && canon(to) == v.states[path[i]] {
					sentence, next = m.Tell(from, e, to), to
				}
			})
		}
		told, from = append(told, sentence), next
	}
	return told
}

// visited is a set of states in order of discovery. A map would hold every state a second time as its key; this table
// holds indices, and beside each some bits of the state's hash, so that a probe seldom has to look at a state in vain.
type visited[S comparable] struct {
	states  []S
	parents []int32
	table   []uint64 // hash in the upper half, index+1 in the lower, 0 = free; open addressing, at most half full
	seed    maphash.Seed
}

func newVisited[S comparable]() *visited[S] {
	return &visited[S]{table: make([]uint64, 1<<10), seed: maphash.MakeSeed()}
}

// add reports whether s is new, and remembers it with its parent.
func (v *visited[S]) add(s S, parent int32) bool {
	hash := maphash.Comparable(v.seed, s)
	mask := uint64(len(v.table) - 1)
	at := hash & mask
	for ; v.table[at] != 0; at = (at + 1) & mask {
		if entry := v.table[at]; entry>>32 == hash>>32 && v.states[uint32(entry)-1] == s {
			return false
		}
	}
	v.states = append(v.states, s)
	v.parents = append(v.parents, parent)
	v.table[at] = hash>>32<<32 | uint64(len(v.states))
	if 2*len(v.states) > len(v.table) {
		v.grow()
	}
	return true
}

// grow doubles the table.
func (v *visited[S]) grow() {
	v.table = make([]uint64, 2*len(v.table))
	mask := uint64(len(v.table) - 1)
	for i, s := range v.states {
		hash := maphash.Comparable(v.seed, s)
		at := hash & mask
		for v.table[at] != 0 {
			at = (at + 1) & mask
		}
		v.table[at] = hash>>32<<32 | uint64(i+1)
	}
}
