// Package remote runs a driver in a process of its own and shows it to this one as a driver. So a test can kill a
// client with kill -9 and see what becomes of its locks. The process is the test binary once more, see [Main].
//
// It serves engines whose holds end with the lease or the process. A session cannot be seen from another process.
package remote

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/internal/optional"
	"github.com/interlock-go/interlock/internal/childproc"
)

// role is the purpose for which the program is started again.
const role = "drivertest/remote"

// grace is how long a call whose context has ended waits for the child's own answer, which says more. It keeps within
// the 50 ms that a driver has.
const grace = 40 * time.Millisecond

// errDied is why a call is unavailable once the process is gone.
var errDied = errors.New("the driver's process has ended")

// Process is a driver's process.
type Process struct {
	child *childproc.Child

	// Guards last and calls; no callback is called under it.
	mu    sync.Mutex
	last  int           // the number of the last call
	calls map[int]*call // by number

	died chan struct{} // closed by read, when the process is gone
	once sync.Once     // for Close
}

// call is one that is under way, or whose Lost or Wanted may still be called.
type call struct {
	r      *driver.Request
	all    []*driver.Request // of an AcquireAll, instead of r
	done   func(int, error)  // of a batch
	hint   func()            // of a watch, or of a wait for a condition
	answer chan *message     // has room for the answer, so that read never blocks
}

// Open starts a process and returns the driver that Main opens there for arg. The process ends when the driver is
// closed.
func Open(arg string) (driver.Driver, *Process, error) {
	cmd, err := childproc.Self(context.Background(), role, arg)
	if err != nil {
		return nil, nil, err
	}
	child, err := childproc.Open(cmd, childproc.Gob, nil)
	if err != nil {
		return nil, nil, err
	}
	p := &Process{child: child, calls: make(map[int]*call), died: make(chan struct{})}
	hello := new(message)
	err = child.Receive(hello)
	go p.read() // ends with the process
	switch {
	case err != nil:
		err = fmt.Errorf("remote: the process does not serve: does TestMain call remote.Main? %w", err)
	case hello.Err != nil:
		err = hello.Err.unpack()
	case hello.Traits.Lifetime == driver.Sessions:
		err = fmt.Errorf("remote: %s has sessions: %w", hello.Traits.Engine, driver.ErrUnsupported)
	default:
		return optional.Show(&client{p: p, traits: hello.Traits}, hello.Optional), p, nil
	}
	p.Kill()
	return nil, nil, err
}

// Kill ends the process as kill -9 does, and returns when it is gone. Nothing is released.
func (p *Process) Kill() {
	p.child.Kill()
	<-p.died
}

// read hands on what the process says, until it ends.
func (p *Process) read() {
	defer close(p.died)
	for {
		m := new(message)
		if p.child.Receive(m) != nil {
			break
		}
		p.hear(m)
	}
	p.child.Kill() // it says nothing any more, whether it has ended or not
}

// hear hands one message to the call that it belongs to. It runs callbacks in the goroutine of read, so they must not
// block.
func (p *Process) hear(m *message) {
	p.mu.Lock()
	c := p.calls[m.Call]
	p.mu.Unlock()
	if c == nil {
		return // its caller has given up
	}
	err := m.Err.unpack()
	switch m.Op {
	case opWaiting:
		if held := (*driver.HeldError)(nil); errors.As(err, &held) && c.r.Waiting != nil {
			c.r.Waiting(held)
		}
	case opWanted:
		if r := c.request(m.Index); r.Wanted != nil {
			r.Wanted()
		}
	case opLost:
		if r := c.request(m.Index); r.Lost != nil {
			r.Lost(m.Reason, err)
		}
	case opRenewed:
		c.done(m.Index, err)
	case opHint:
		c.hint()
	case opAnswer:
		c.answer <- m
	}
}

// request returns the request of that index.
func (c *call) request(index int) *driver.Request {
	if c.r != nil {
		return c.r
	}
	return c.all[index]
}

// begin sends m as a new call.
func (p *Process) begin(m *message, c *call) error {
	c.answer = make(chan *message, 1)
	p.mu.Lock()
	p.last++
	m.Call = p.last
	p.calls[m.Call] = c
	p.mu.Unlock()
	return p.child.Send(m)
}

// ask makes a call and returns its answer. An error means that there was none.
func (p *Process) ask(ctx context.Context, m *message, c *call) (*message, error) {
	if err := ctx.Err(); err != nil {
		return nil, err // not sent, so nothing has happened
	}
	if err := p.begin(m, c); err != nil {
		return nil, &driver.UnavailableError{Op: m.Op, Err: errDied}
	}
	// A call with callbacks stays known after its answer: a loss may come at any time.
	if len(c.all) == 0 && (c.r == nil || c.r.Lost == nil && c.r.Wanted == nil) {
		defer p.forget(m.Call)
	}
	select {
	case answer := <-c.answer:
		return answer, nil
	case <-p.died:
		return nil, &driver.UnavailableError{Op: m.Op, Err: errDied}
	case <-ctx.Done():
	}
	// The child's own answer is worth waiting for: it may be a grant. If the message cannot be sent, the process has
	// ended.
	_ = p.child.Send(&message{Call: m.Call, Op: opCancel})
	patience := time.NewTimer(grace)
	defer patience.Stop()
	select {
	case answer := <-c.answer:
		answer.endedBy(ctx.Err())
		return answer, nil
	case <-patience.C:
	case <-p.died:
	}
	return nil, &driver.UnavailableError{Op: m.Op, Err: ctx.Err()}
}

// forget removes a call.
func (p *Process) forget(number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.calls, number)
}
