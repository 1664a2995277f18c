package experiment

import (
	"time"

	"github.com/interlock-go/interlock/lab/internal/play"
)

// caller is an actor whose call to lock goes on while the lab does.
type caller struct {
	*play.Actor
	got chan error // what the call returned
}

func newCaller(a *play.Actor) caller { return caller{a, make(chan error, 1)} }

// patience bounds every wait for a call.
const patience = 30 * time.Second

// hears waits for what the call tells the lab. A call that returns instead ends the experiment.
func (c *caller) hears(p *play.Play, what <-chan struct{}) {
	p.Helper()
	select {
	case <-what:
	case err := <-c.got:
		p.Fatalf("%s: the exhibit's Lock returned %v", c.Name(), err)
	case <-p.Context().Done():
		p.Fatal(p.Context().Err())
	case <-time.After(patience):
		p.Fatalf("%s neither waits nor is woken", c.Name())
	}
}

// locked waits until the call has taken the lock.
func (c *caller) locked(p *play.Play) {
	p.Helper()
	select {
	case err := <-c.got:
		c.Got(true, true, err)
	case <-p.Context().Done():
		p.Fatal(p.Context().Err())
	case <-time.After(patience):
		p.Fatalf("%s does not get the lock", c.Name())
	}
}

// goesOn lets the call go on, which stands still where it was woken.
func (c *caller) goesOn(p *play.Play, turn chan<- struct{}) {
	p.Helper()
	select {
	case turn <- struct{}{}:
	case <-p.Context().Done(): // it goes on by itself then
		p.Fatal(p.Context().Err())
	}
}
