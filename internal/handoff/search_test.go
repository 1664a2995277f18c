package handoff

import (
	"fmt"
	"slices"
	"testing"
)

// steps is a toy: a number from 0 that grows by 1 or by 7, up to a top, and is at fault at bad.
type steps struct{ top, bad int }

func (m steps) Start() int { return 0 }

func (m steps) Next(s int, visit func(Event, int)) {
	for _, d := range []int{1, 7} {
		if s+d <= m.top {
			visit(Event{Who: uint8(d)}, s+d)
		}
	}
}

func (m steps) Check(s int) Fault {
	if s == m.bad {
		return "bad"
	}
	return ""
}

func (m steps) Tell(from int, e Event, to int) string {
	return fmt.Sprintf("%d+%d=%d", from, e.Who, to)
}

// twins is a toy with two interchangeable counters, at fault when one is at 2 and the other at 1.
type twins struct{}

func (twins) Start() [2]int { return [2]int{} }

func (twins) Next(s [2]int, visit func(Event, [2]int)) {
	for i := range s {
		if to := s; s[i] < 3 {
			to[i]++
			visit(Event{Who: uint8(i)}, to)
		}
	}
}

func (twins) Check(s [2]int) Fault {
	if s == [2]int{1, 2} {
		return "bad"
	}
	return ""
}

func (twins) Tell(from [2]int, e Event, to [2]int) string { return fmt.Sprint(e.Who, from, to) }

func (twins) Canon(s [2]int) [2]int {
	slices.Sort(s[:])
	return s
}

func TestSearch_VisitsEveryReachableStateOnce(t *testing.T) {
	r := Search(steps{top: 99_999, bad: -1}, 1_000_000)
	if r.States != 100_000 || !r.Complete || r.Fault != "" {
		t.Errorf("got %v, complete %v, want all of 100000 states", r, r.Complete)
	}
}

func TestSearch_TellsAShortestStory(t *testing.T) {
	r := Search(steps{top: 100, bad: 16}, 1000)
	if want := 4; r.Fault != "bad" || len(r.Story) != want || r.Depth != want {
		t.Errorf("got %v, want a story of %d steps", r, want)
	}
}

func TestSearch_GivesUpAtTheLimitAndSaysSo(t *testing.T) {
	if r := Search(steps{top: 1000, bad: 900}, 100); r.Complete || r.Fault != "" {
		t.Errorf("got %v, complete %v, want an incomplete search", r, r.Complete)
	}
}

func TestSearch_FindsAFaultInTheStart(t *testing.T) {
	if r := Search(steps{top: 10, bad: 0}, 100); r.Fault != "bad" || len(r.Story) != 0 {
		t.Errorf("got %v, want a fault without a story", r)
	}
}

func TestSearch_OfASymmetricModel_KeepsNamesInItsStory(t *testing.T) {
	r := Search(twins{}, 1000)
	if r.Fault != "bad" || len(r.Story) != 3 {
		t.Fatalf("got %v, want a story of three steps", r)
	}
	// Each sentence starts where the one before has ended, although the search has renamed the states between.
	want := []string{"0 [0 0] [1 0]", "0 [1 0] [2 0]", "1 [2 0] [2 1]"}
	if alike := []string{"0 [0 0] [1 0]", "1 [1 0] [1 1]", "0 [1 1] [2 1]"}; !slices.Equal(r.Story, want) &&
		!slices.Equal(r.Story, alike) {
		t.Errorf("got the story %q, want %q or %q", r.Story, want, alike)
	}
}

func TestWire_IsTheSameWhateverTheOrderOfSending(t *testing.T) {
	a, b := newMsg(acquire, 1, 0, 0), newMsg(push, 2, 3, 0)
	var w, v wire
	w.put(a, 4)
	w.put(b, 4)
	v.put(b, 4)
	v.put(a, 4)
	if w != v {
		t.Errorf("got %v and %v, want equal wires", w, v)
	}
	if w.take(0); w.len() != 1 || w.put(a, 1) {
		t.Errorf("got %v, want one message and no room for another", w)
	}
}

func TestWire_DropsRequestsAtTheHorizonOnly(t *testing.T) {
	var w wire
	w.put(newMsg(acquire, 1, 0, 0), 4)
	w.put(newMsg(yours, 1, 0, 0), 4)
	w.tick(3, 2)
	if w.len() != 2 {
		t.Fatalf("got %v after one tick, want both messages", w)
	}
	if w.tick(3, 2); w.len() != 1 || w[0] != newMsg(yours, 1, 2, 0) {
		t.Errorf("got %v after two ticks, want the answer only", w)
	}
}
