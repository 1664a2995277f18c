package play

import (
	"time"

	"github.com/interlock-go/interlock/lab/internal/story"
)

// Stepper is a client that stands still before each command of its program until the director lets it go on.
type Stepper struct {
	a    *Actor
	run  func()
	done chan struct{} // nil before the first step
	next []string      // the command before which it stands
	over bool
}

// Stepper returns the client with a program, which begins with the first step.
func (a *Actor) Stepper(run func()) *Stepper { return &Stepper{a: a, run: run} }

// Next is the command that the client is about to send, as a story tells it; "" if it has not begun or is over.
func (s *Stepper) Next() string { return Command(s.next) }

// Begun reports whether the program has begun.
func (s *Stepper) Begun() bool { return s.done != nil }

// Over reports whether the program has ended.
func (s *Stepper) Over() bool { return s.over }

// Step lets the client send its next command, and returns when it stands before another one or has ended.
func (s *Stepper) Step() {
	s.a.p.Helper()
	if s.done == nil {
		s.begin()
	}
	if s.over {
		return
	}
	s.GoesOn()
	s.arm()
	s.a.resume <- true
	s.await()
}

func (s *Stepper) begin() {
	s.a.p.Helper()
	s.done = make(chan struct{})
	s.arm()
	go func() { // ends by Step or Kill
		defer close(s.done)
		s.run()
	}()
	s.await()
}

// arm has the client stand still before its next command.
func (s *Stepper) arm() {
	s.a.stop = func(args []string) bool {
		s.next = args
		return true
	}
}

func (s *Stepper) await() {
	s.a.p.Helper()
	select {
	case <-s.a.stopped:
	case <-s.done:
		s.next, s.over = nil, true
	case <-s.a.p.Context().Done():
		s.a.p.Fatal(s.a.p.Context().Err())
	case <-time.After(patience):
		s.a.p.Fatalf("%s neither sends a command nor ends", s.a.name)
	}
}

// Kill ends the client: as after kill -9, its connections break and it sends nothing any more. After a Step that has
// failed the client may be in a command, or about to stand still.
func (s *Stepper) Kill() {
	s.a.p.Helper()
	if s.done != nil && !s.over {
		if !s.a.dismiss(s.done) {
			s.a.p.Fatalf("%s does not end", s.a.name)
		}
		s.next = nil
	}
	s.over = true
	s.a.Kill() // after its program, which may have said something at last
}

// StandsStill has the picture show that the client stands still while others go on.
func (s *Stepper) StandsStill() {
	if s.done == nil || s.over {
		return
	}
	switch s.a.p.state(s.a.name) {
	case story.Holds:
		s.a.p.set(s.a.name, story.Still)
	case story.Idle:
		s.a.p.set(s.a.name, story.Halted)
	}
}

// GoesOn ends that; Step does so by itself.
func (s *Stepper) GoesOn() {
	switch s.a.p.state(s.a.name) {
	case story.Still:
		s.a.p.set(s.a.name, story.Holds)
	case story.Halted:
		s.a.p.set(s.a.name, story.Idle)
	}
}

// Passes lets time pass, and tells it.
func (p *Play) Passes(d time.Duration, en, zh string, args ...any) {
	p.Helper()
	select {
	case <-time.After(d):
		p.Fate(en, zh, args...)
	case <-p.Context().Done():
		p.Fatal(p.Context().Err())
	}
}
