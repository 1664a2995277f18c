package play

import (
	"errors"
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
