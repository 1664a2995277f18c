package play

import (
	"strings"
	"time"

	"github.com/interlock-go/interlock/lab/internal/story"
)

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
