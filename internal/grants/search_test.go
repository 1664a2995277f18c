package grants

import (
	"cmp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/trust"
)

// Every state that a client, a waiter elsewhere and an engine can reach over a network that loses, delays, repeats and
// reorders. The client is the code that users run, not a model of it: Take, Next, MayTakeOver, Shorten, Confirm,
// TooLate. Time is a tick of a second; all instants are kept relative to the present one, so there is no end of time to
// reach.

const (
	tick      = time.Second
	longTicks = 3 // the lock's lease; RetainLease is two
	room      = 2 // messages under way at once
	oldest    = 4 // ticks after which a message or an instant is as good as any older one
)

type kind uint8

const (
	none kind = iota
	acquire
	renew
	shorten
	release
	granted
	renewed
	shortened
	ended
	wanted
)

type message struct {
	kind kind
	pass int8
	age  int8 // ticks since it was sent, or since the request that it answers was
	late bool // sent in the tick of a shortening, but before it
}

type world struct {
	g        Grant // the client's
	inside   bool
	retained bool
	leaving  bool
	engine   int8 // ticks until the client's hold ends there
	pass     int8 // the last that the engine has heard of
	dead     bool // the id was released
	other    int8 // ticks until the other client's hold ends
	told     bool
	wire     [room]message
}

// flaws switch one line of the real code off, to see that the search would find it.
type flaws struct{ cut, older, keepsWanted, takesAll bool }

// step is how a state was reached first.
type step struct {
	from world
	why  string
}

type search struct {
	env   Env
	terms Terms
	flaws flaws
	seen  map[world]step
	from  world
	todo  []world
	fault string
}

func at(age int8) trust.Instant { return trust.Instant(-time.Duration(age) * tick) }

// now is the present instant, always.
const now trust.Instant = 0

func (s *search) visit(w world, why string) {
	// Which order messages stand in does not matter.
	for i := range w.wire {
		for j := i + 1; j < room; j++ {
			a, b := w.wire[i], w.wire[j]
			if cmp.Or(cmp.Compare(a.kind, b.kind), cmp.Compare(a.age, b.age), cmp.Compare(a.pass, b.pass)) < 0 {
				w.wire[i], w.wire[j] = b, a
			}
		}
	}
	if _, was := s.seen[w]; !was {
		s.seen[w] = step{s.from, why}
		s.todo = append(s.todo, w)
		if w.inside && w.other > 0 && now < w.g.Deadline(&s.env) {
			s.fault = s.story(w)
		}
	}
}

// story tells the way to w.
func (s *search) story(w world) string {
	var all []string
	for w.wire != (world{}).wire || w.g.Phase != Requested {
		by := s.seen[w]
		all = append(all, by.why)
		if by.why == "the start" {
			break
		}
		w = by.from
	}
	slices.Reverse(all)
	return strings.Join(all, ", ")
}

func (w world) put(m message) (world, bool) {
	for i := range w.wire {
		if w.wire[i].kind == none {
			w.wire[i] = m
			return w, true
		}
	}
	return w, false
}

func (s *search) run() {
	s.seen = map[world]step{}
	w := world{g: Grant{ID: "A", Phase: Requested, Recallable: true}}
	w, _ = w.put(message{kind: acquire})
	for s.visit(w, "the start"); len(s.todo) > 0 && s.fault == ""; {
		w := s.todo[0]
		s.todo = s.todo[1:]
		s.from = w
		s.act(w)
		for i, m := range w.wire {
			if m.kind != none {
				to := w
				s.deliver(to, m, "a copy is delivered") // and another one stays
				to.wire[i] = message{}
				s.visit(to, "a message is lost")
				s.deliver(to, m, "a message is delivered")
			}
		}
		s.tick(w)
	}
}

// act takes every step of the client and of the other one.
func (s *search) act(w world) {
	send := func(to world, k kind, why string) {
		if to, ok := to.put(message{kind: k, pass: int8(to.g.Pass)}); ok {
			s.visit(to, why)
		}
	}
	switch {
	case w.inside:
		to := w
		to.inside = false
		switch w.g.Next(&s.env, &s.terms, now, Around{CanRetain: true}) {
		case Retain:
			to.retained = true
			s.visit(to, "unlock retains")
		default:
			s.leave(to)
		}
		send(w, renew, "a renewal is sent")
	case w.retained:
		to := w
		if to.retained = false; s.flaws.takesAll || to.g.MayTakeOver(&s.env, &s.terms, now) {
			if to.g.Pass < 1 {
				to.g.Pass++
				to.inside = true
				s.visit(to, "a lock takes over")
			}
		} else {
			s.leave(to)
		}
		to = w
		if !s.flaws.cut {
			to.g.Shorten(now, RetainLease)
			for i := range to.wire {
				to.wire[i].late = to.wire[i].age == 0 && to.wire[i].kind != none
			}
		}
		if to.g.Pass == w.g.Pass {
			send(to, shorten, "a shortening is sent")
		}
	case w.leaving:
		send(w, release, "a release is sent")
	case w.g.Phase == Requested:
		send(w, acquire, "the request is sent again")
	}
	if w.engine == 0 && w.other == 0 {
		to := w
		to.other = 2
		s.visit(to, "the other one gets it")
	}
	if w.engine > 0 {
		if to, ok := w.put(message{kind: wanted}); ok && !to.told {
			to.told = true
			s.visit(to, "the other one wants it")
		}
	}
}

func (s *search) leave(w world) {
	w.retained, w.inside, w.leaving = false, false, true
	w.g.Phase = Gone
	s.visit(w, "it is given back")
}

func (s *search) deliver(w world, m message, why string) {
	answer := func(to world, k kind) {
		if to, ok := to.put(message{kind: k, age: m.age, pass: m.pass, late: m.late}); ok {
			s.visit(to, why)
		}
	}
	has := w.inside || w.retained
	switch m.kind {
	case acquire:
		switch {
		case w.dead || w.other > 0:
		case w.engine == 0 && w.g.Phase == Requested || w.engine > 0:
			w.engine = max(w.engine, longTicks)
			answer(w, granted)
		}
	case renew, shorten:
		if w.engine == 0 || m.pass < w.pass {
			return
		}
		w.pass = m.pass
		if w.engine = longTicks; m.kind == shorten {
			w.engine = int8(RetainLease / tick)
		}
		answer(w, m.kind+(renewed-renew))
	case release:
		w.engine, w.dead = 0, true
		answer(w, ended)
	case granted:
		a := driver.Grant{Token: 1, Tokens: 64, Nonce: "A", Lease: longTicks * tick, Sent: s.time(m.age)}
		if w.g.Phase == Requested && !TooLate(&s.env, a, now) {
			w.g.Take(&s.env, a, now)
			w.inside = true
			w.g.Window.Sent, w.g.Renewed, w.g.Since = at(m.age), at(m.age), 0
			s.visit(w, why)
		}
	case renewed, shortened:
		if !has {
			return
		}
		lease := longTicks * tick
		if m.kind == shortened {
			lease = RetainLease
		}
		if s.flaws.older {
			w.g.Shortened = at(oldest)
		}
		sent := at(m.age)
		if m.late {
			sent--
		}
		w.g.Confirm(sent, lease)
		s.visit(w, why)
	case ended:
		w.leaving = false
		s.visit(w, why)
	case wanted:
		w.told = false
		if w.retained && !s.flaws.keepsWanted {
			s.leave(w)
			return
		}
		w.g.Recalled = !s.flaws.keepsWanted
		s.visit(w, why)
	}
}

// time turns an age into what a driver reports.
func (s *search) time(age int8) time.Time { return s.env.Clock.Time(at(age)) }

// tick lets a second pass for everybody.
func (s *search) tick(w world) {
	for _, i := range []*trust.Instant{&w.g.Window.Sent, &w.g.Renewed, &w.g.Shortened} {
		*i = max((*i-trust.Instant(tick))/trust.Instant(tick)*trust.Instant(tick), at(oldest)) // whole ticks
	}
	w.engine, w.other = max(0, w.engine-1), max(0, w.other-1)
	for i := range w.wire {
		if w.wire[i].kind != none {
			w.wire[i].age = min(w.wire[i].age+1, oldest)
		}
	}
	if (w.inside || w.retained) && now >= w.g.Deadline(&s.env) {
		w.inside, w.retained = false, false
		w.g.Phase = Gone
	}
	s.visit(w, "a second passes")
}

func newSearch(f flaws) *search {
	return &search{
		env:   Env{Lifetime: driver.Leases, LocalHandoffs: 9, LocalHandoffTime: time.Hour},
		terms: Terms{Lease: longTicks * tick}, flaws: f,
	}
}

func TestSearch_NoTwoAreInside(t *testing.T) {
	s := newSearch(flaws{})
	s.run()
	t.Logf("%d states", len(s.seen))
	if s.fault != "" || len(s.seen) < 10_000 {
		t.Error(s.fault)
	}
}

func TestSearch_FindsEachFlaw(t *testing.T) {
	for name, f := range map[string]flaws{
		"the trust is not cut before a shortening": {cut: true},
		"an answer to an earlier renewal counts":   {older: true},
	} {
		s := newSearch(f)
		s.run()
		if s.fault == "" {
			t.Errorf("%s: nothing found in %d states", name, len(s.seen))
		}
		t.Logf("%s: %s (%d states)", name, s.fault, len(s.seen))
	}
}
