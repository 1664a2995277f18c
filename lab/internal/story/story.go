// Package story is what an experiment leaves behind: who did what, what the server answered, and who believed to hold
// what after each step. It is told in words (text.go, print.go) and as a picture (picture.go).
package story

import (
	"slices"
	"time"
)

// Story is one experiment that was run.
type Story struct {
	ID    string `json:"id"`    // as in D3
	Title Text   `json:"title"` // the exhibit, in a line
	About Text   `json:"about"` // what it does, and what is wrong with it
	Acts  []*Act `json:"acts"`
}

// Act is one course of events: the exhibit's, or the sound lock's in the same events.
type Act struct {
	Title  Text     `json:"title"`
	Fenced bool     `json:"fenced"`         // two may believe: what is shown is that the resource refuses one of them
	Sound  bool     `json:"sound"`          // of the sound lock: two believers would be a bug of interlock
	Cast   []string `json:"cast"`           // who may believe to hold the lock, in the order of the picture
	Keys   []string `json:"keys,omitempty"` // the servers that are asked, after each step, who holds it
	Steps  []Step   `json:"steps"`
}

// Kind is the sort of a step.
type Kind string

// The kinds of steps.
const (
	Says    Kind = "says"    // the narrator, or an actor, in words
	Asks    Kind = "asks"    // a command and its answer
	Fate    Kind = "fate"    // what befalls somebody: a crash, a pause, time that passes
	Clash   Kind = "clash"   // two believe to hold what only one may hold
	Shown   Kind = "shown"   // what was to be shown
	Missing Kind = "missing" // what was to be shown and was not
)

// State is what an actor believes, and in what state it is.
type State string

// The states of an actor. Who stands still cannot do harm at the moment, and cannot be told anything either.
const (
	Idle  State = ""
	Holds State = "holds"
	Still State = "still" // stands still, and believed that it holds the lock when it stopped
	Dead  State = "dead"
	Woken State = "woken" // for nothing: another has the lock
)

// Step is one line of the story, and how things stand after it.
type Step struct {
	At     time.Duration    `json:"at_ns"` // since the story began
	Who    string           `json:"who,omitempty"`
	Kind   Kind             `json:"kind"`
	Text   Text             `json:"text"`
	States map[string]State `json:"states,omitempty"` // by member of the cast
	// for each of Keys: who holds it as that server says, "" for nobody
	Held []string `json:"held,omitempty"`
}

// Believers returns who acts and believes to hold the lock.
func (s *Step) Believers() []string {
	var all []string
	for who, state := range s.States {
		if state == Holds {
			all = append(all, who)
		}
	}
	slices.Sort(all)
	return all
}

// Clashed reports whether two believed to hold the lock at some step.
func (a *Act) Clashed() bool {
	return slices.ContainsFunc(a.Steps, func(s Step) bool { return len(s.Believers()) > 1 })
}

// OK reports whether all was shown that was to be shown, and no two believed to hold the sound lock.
func (s *Story) OK() bool {
	for _, a := range s.Acts {
		if a.Sound && !a.Fenced && a.Clashed() ||
			slices.ContainsFunc(a.Steps, func(s Step) bool { return s.Kind == Missing }) {
			return false
		}
	}
	return len(s.Acts) > 0
}
