package play

import (
	"errors"
	"strings"
	"time"

	"github.com/interlock-go/interlock/lab/internal/story"
)

// errDead is what a client gets that was killed. It is a goroutine here, which lives a little longer; it cannot reach
// its server any more, and nobody looks at what it returns.
var errDead = errors.New("this client was killed")

// patience bounds every wait of a director: what should have happened by then will not.
const patience = 30 * time.Second

// Actor is a client that runs an exhibit. The lab stands between it and its servers.
type Actor struct {
	p    *Play
	name string

	stop    func(args []string) bool // where it is to stand still; nil if nowhere
	stopped chan struct{}            // it stands still
	resume  chan bool                // false: it is dead
	dead    bool
	quiet   bool // nothing is written down
	links   []*Link
}

// Actor returns a new client.
func (p *Play) Actor(name string) *Actor {
	p.cast(name)
	return &Actor{p: p, name: name, stopped: make(chan struct{}), resume: make(chan bool)}
}

// Name returns the client's name.
func (a *Actor) Name() string { return a.name }

// gate is passed before each command. The client stands still here if it is to, and does not pass when it is dead.
func (a *Actor) gate(args []string) error {
	a.p.reached(a.name, exhibitLines())
	if a.stop != nil && a.stop(args) {
		a.stop = nil
		a.stopped <- struct{}{}
		a.dead = !<-a.resume
	}
	if a.dead {
		return errDead
	}
	return nil
}

// Says tells what the client does or thinks.
func (a *Actor) Says(en, zh string, args ...any) {
	a.p.step(a.name, story.Says, story.T(en, zh, args...))
}

// Told tells what went between the client and a server over a connection of the client's own: a command with its
// answer, or what the server said by itself.
func (a *Actor) Told(server string, way story.Way, text story.Text) {
	a.p.reached(a.name, exhibitLines())
	a.p.record(a.name, kindOf(way), text, &story.Message{To: server, Way: way})
}

// kindOf is how a story tells what a client heard or asked: only what it asked is a command.
func kindOf(way story.Way) story.Kind {
	if way == story.Reply {
		return story.Says
	}
	return story.Asks
}

// Believes tells that the client believes to hold the lock, or does not any more, and why.
func (a *Actor) Believes(holds bool, en, zh string, args ...any) {
	a.p.Helper()
	state := story.Idle
	if holds {
		state = story.Holds
	}
	a.p.set(a.name, state)
	a.Says(en, zh, args...)
}

// Got takes what an exhibit's acquisition returned, tells it, and fails the experiment if that
// is not what was expected.
func (a *Actor) Got(want, got bool, err error) {
	a.p.Helper()
	if err != nil || got != want {
		a.p.Fatalf("%s: the exhibit returned %v, %v instead of %v", a.name, got, err, want)
	}
	if got && a.p.state(a.name) == story.Holds {
		a.Says("is told that it has the lock once more.", "被告知又拿到了一次锁。")
		return
	}
	if got {
		a.Believes(true, "has got it, and begins to work.", "拿到了锁，开始干活。")
		return
	}
	a.Says("is refused.", "被拒绝。")
}

// Freed takes what an exhibit's release returned, and tells it.
func (a *Actor) Freed(err error) {
	a.p.Helper()
	if err != nil {
		a.p.Fatalf("%s: the exhibit's release: %v", a.name, err)
	}
	a.Believes(false, "is done, and believes that it has released its lock.", "干完了，认为自己的锁已经释放。")
}

// Kill ends a client that is in no call.
func (a *Actor) Kill() {
	a.hangUp()
	a.dead = true
	a.p.set(a.name, story.Dead)
}

// hangUp breaks the client's connections.
func (a *Actor) hangUp() {
	for _, l := range a.links {
		_ = l.current().Close()
	}
}

// dismiss ends a call of the client, which closes done, wherever it is: in a command, about to stand still, or standing
// still. It reports false if the call does not end.
func (a *Actor) dismiss(done <-chan struct{}) bool {
	a.hangUp()
	for {
		select {
		case <-a.stopped:
		case a.resume <- false:
		case <-done:
			return true
		case <-time.After(patience):
			return false
		}
	}
}

// Quietly calls f, whose commands the story does not tell.
func (a *Actor) Quietly(f func() error) error {
	a.quiet = true
	defer func() { a.quiet = false }()
	return f()
}

// StandStill makes the client stand still while it is in no call.
func (a *Actor) StandStill() {
	a.p.set(a.name, story.Still)
	a.p.step(a.name, story.Fate, story.T("stands still, as in a long garbage collection.", "停住了，就像一次很长的 GC。"))
}

// GoOn ends it.
func (a *Actor) GoOn() {
	a.p.set(a.name, story.Holds)
	a.p.step(a.name, story.Fate, story.T("goes on with its work, as a holder.", "继续干活，还以为自己持有锁。"))
}

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

// Pause is a call of an exhibit that stands still before a command.
type Pause struct {
	a    *Actor
	done chan struct{}
}

// Until runs f until it is about to send a command that begins with the given word, and returns then. f runs on after
// Resume. If it ends before, the experiment has failed.
func (a *Actor) Until(command string, f func()) *Pause {
	a.p.Helper()
	return a.UntilNth(command, 1, f)
}

// UntilNth is Until for the n-th of such commands.
func (a *Actor) UntilNth(command string, n int, f func()) *Pause {
	a.p.Helper()
	a.stop = func(args []string) bool {
		if strings.EqualFold(args[0], command) {
			n--
		}
		return n == 0
	}
	pause := &Pause{a: a, done: make(chan struct{})}
	a.p.Cleanup(pause.abandon)
	go func() { // ends by Resume, Kill or the end of the experiment
		defer close(pause.done)
		f()
	}()
	select {
	case <-a.stopped:
	case <-pause.done:
		a.p.Fatalf("%s never sent %s", a.name, command)
	case <-a.p.Context().Done():
		a.p.Fatal(a.p.Context().Err())
	case <-time.After(patience):
		a.p.Fatalf("%s neither sent %s nor ended", a.name, command)
	}
	if a.p.state(a.name) == story.Holds {
		a.p.set(a.name, story.Still)
	} else {
		a.p.set(a.name, story.Halted)
	}
	return pause
}

// Resume lets the call go on, and returns when it has ended.
func (c *Pause) Resume() {
	c.a.p.Helper()
	switch c.a.p.state(c.a.name) {
	case story.Still:
		c.a.p.set(c.a.name, story.Holds)
	case story.Halted:
		c.a.p.set(c.a.name, story.Idle)
	}
	c.end(true)
}

// Kill ends the client: as after kill -9, its connections break and it sends nothing any more.
func (c *Pause) Kill() {
	c.a.p.Helper()
	c.a.hangUp()
	c.a.p.set(c.a.name, story.Dead)
	c.end(false)
}

func (c *Pause) end(alive bool) {
	c.a.p.Helper()
	c.a.resume <- alive
	select {
	case <-c.done:
	case <-time.After(patience):
		c.a.p.Fatalf("%s does not end", c.a.name)
	}
}

// abandon ends a call that neither Resume nor Kill has ended, because the experiment failed before.
func (c *Pause) abandon() {
	select {
	case <-c.done:
		return
	default:
	}
	if !c.a.dismiss(c.done) {
		c.a.p.Errorf("%s does not end", c.a.name)
	}
}
