// The process: how it is started, told what to do and heard. process_lock.go has what it does with its lock.

package play

import (
	"time"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/childproc"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Process is a client that uses the sound lock, in a process of its own, so that kill -9 and SIGSTOP are the real ones.
type Process struct {
	p    *Play
	name string
	url  string
	lock string

	child   *childproc.Child
	answers chan *report
	queues  chan struct{} // it waits, in an exhibit
	lost    chan struct{}
	ended   chan error // why it says no more

	stamp fence.Stamp // what it shows to a resource, as of its last grant
	lease time.Duration
	act   *story.Act
	waits bool // it has asked for the lock, and is not answered yet
}

// Process starts a process that opens the engine at url; "" opens none. Its locks all have the same name.
func (p *Play) Process(name, url, lock string, lease time.Duration) *Process {
	p.Helper()
	p.cast(name)
	c := &Process{
		p: p, name: name, url: url, lock: lock, lease: lease, act: p.now(),
		answers: make(chan *report, 1), queues: make(chan struct{}, 1), lost: make(chan struct{}, 1),
		ended: make(chan error, 1),
	}
	by := p.Tap(name, url) // before the process, so that it ends after it
	if err := c.start(); err != nil {
		p.Fatalf("a process for %s: %v", name, err)
	}
	if url != "" {
		c.must(&order{Do: "open", URL: by, Lease: lease.Milliseconds(), Wait: patience.Milliseconds()})
	}
	return c
}

func (c *Process) start() error {
	cmd, err := childproc.Self(c.p.Context(), role, c.name)
	if err != nil {
		return err
	}
	if c.child, err = childproc.Open(cmd, nil); err != nil {
		return err
	}
	go c.read() // ends with the process, which the clean-up kills at the latest
	c.p.Cleanup(c.child.Kill)
	return nil
}

// read hands out what the process says until it ends.
func (c *Process) read() {
	for {
		r := new(report)
		if err := c.child.Receive(r); err != nil {
			c.ended <- err
			return
		}
		switch {
		case r.Renewed:
			c.p.beat(c.act, c.name, c.lease)
		case r.Lost:
			signal(c.lost)
		case r.Queues:
			signal(c.queues)
		case r.Command != "":
			text, way := ZooSaid(r.Command, r.Answer)
			c.p.record(c.name, kindOf(way), text, &story.Message{To: "ZooKeeper", Way: way})
		default:
			c.answers <- r
		}
	}
}

// signal tells a director what it may have been told before.
func signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// send gives an order; answer waits for its report.
func (c *Process) send(o *order) {
	c.p.Helper()
	o.Name = c.lock
	if err := c.child.Send(o); err != nil {
		c.p.Fatalf("%s: %v", c.name, err)
	}
}

func (c *Process) answer() *report {
	c.p.Helper()
	select {
	case r := <-c.answers:
		return r
	case err := <-c.ended:
		c.p.Fatalf("%s: %v", c.name, err)
	case <-time.After(patience):
		c.p.Fatalf("%s does not answer", c.name)
	}
	return nil
}

func (c *Process) ask(o *order) *report {
	c.p.Helper()
	c.send(o)
	return c.answer()
}

// must gives an order that has to succeed.
func (c *Process) must(o *order) *report {
	c.p.Helper()
	r := c.ask(o)
	if !r.OK {
		c.p.Fatalf("%s: %s: %s", c.name, o.Do, r.Why)
	}
	return r
}

// Says tells what the process does or thinks.
func (c *Process) Says(en, zh string, args ...any) {
	c.p.step(c.name, story.Says, story.T(en, zh, args...))
}
