// The Conn: its state, its end, and the rule that some goroutine always does the work that is due. The files beside it
// are named after what that is: call, await, write, read.

package resp

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
)

// mostOwed is how many answers a Conn may be owed. Whoever wants to send more waits in enter, which bounds the memory
// of the queue.
const mostOwed = 4096

var (
	// ErrBroken says that the connection has ended, and that what was under way may have run.
	ErrBroken = errors.New("the connection broke")

	errUninvited = errors.New("the server answered a question that nobody asked")
	errSilent    = errors.New("the server does not answer")
)

// Conn is one RESP3 connection that many goroutines use at once. Between them and the server it has no goroutines of
// its own: whoever comes does the work that is there, for the others as well.
//
//   - Writing: a goroutine that finds none writing writes everything that has gathered, and again until nothing is
//     left.
//   - Reading: of those that wait for an answer ([Conn.Call]) or a push ([Conn.Await]), one has the role of the reader.
//     It hands out what it reads until its own is there, and leaves. The role is free then; another waiting goroutine
//     is woken for it, unless a new one takes it first. So an answer that one goroutine waits for alone costs no change
//     of goroutines.
//   - If none has wanted the role for a moment, a goroutine of the Conn takes it, so that pushes and the end of the
//     connection are still seen. If a push may be for somebody who does not wait (see [Conn.Attend]), it takes the role
//     at once, and keeps it.
//
// The Conn ends when the connection breaks, with everything that was under way. It is not repaired: rueidisconn makes a
// new one.
type Conn struct {
	conn net.Conn // with TLS, if it is used; reads and writes go here
	raw  *socket  // without TLS; deadlines are set here
	// pushed gets the pushes, in their order, from the reader and without mu. It must not wait for a call of the Conn,
	// since the reader cannot read meanwhile.
	pushed func(kind, channel, message string)

	closed chan struct{}  // closed by fail, under mu
	work   sync.WaitGroup // timers that are set, and goroutines that were started

	requests, waiters sync.Pool // requests and waiters that are not in use

	// mu guards what follows. Nothing is waited for under it, and pushed is not called under it.
	mu  sync.Mutex
	err error // why the Conn ended; nil while it lives

	out, spare []byte        // commands that are not written yet; the buffer that is used next
	sent       uint64        // how many bytes were given to conn, in all
	flusher    *waiter       // the goroutine that writes; nil for none
	behind     bool          // raw has kept bytes that the system did not take
	crowd      bool          // several requests got their answers at once
	gathering  bool          // the writer lets these go first, and writes after them
	full       bool          // a full bundle is in out and must not wait for that
	gathered   bundle        // requests that go out after out
	queue      queue         // requests without their answers, in the order of their commands
	owed       int           // how many answers they await
	room       chan struct{} // closed when owed has gone down; nil if none waits to send

	reader        *waiter   // the goroutine that reads; nil for none
	ticks         bool      // the reader stops at the next tick at the latest
	trusting      int       // how many are parked and rely on the ticks
	tick          time.Time // when the next one is due
	deadline      time.Time // of conn, for reading, as it was set last
	writeDeadline time.Time // of conn, for writing
	stale         bool      // conn's deadline was reached or changed to interrupt: it is not deadline
	reads         uint64    // how often the reader's role was taken
	received      uint64    // how often a read brought something
	doubtful      bool      // what was taken for the end of a subscription may not have been asked for; see takePush
	answered      uint64    // how many requests have got their answers
	awaiters      waiterList
	resting       waiter // the Conn itself, when it reads or writes on its own

	idling, pulsing timer
	idleReads       uint64 // reads, when idling was set
	attends         bool   // pushes must be seen at once, even if nobody waits
	attending       bool   // a goroutine was started to take the reader's role for that
	pulseReceived   uint64 // received, at the last pulse
	silent          int    // how many pulses there were since something was received

	input input // the reader's alone, used without mu
}

// newConn returns a Conn over a connection: raw itself, or the encrypted connection above it.
func newConn(over net.Conn, raw *socket, b *conn.Bundle, pushed func(kind, channel, message string)) *Conn {
	c := &Conn{conn: over, raw: raw, pushed: pushed, closed: make(chan struct{})}
	c.gathered.of, c.gathered.on = b, b != nil
	c.idling.init(c, c.idle)
	c.pulsing.init(c, c.pulse)
	c.mu.Lock()
	defer c.mu.Unlock()
	c.idling.set(idleTime)
	return c
}

// Close ends the connection and everything under way. It returns when all goroutines and timers of the Conn have ended,
// so pushed must not call it.
func (c *Conn) Close() {
	c.mu.Lock()
	c.fail(net.ErrClosed)
	c.mu.Unlock()
	c.work.Wait()
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.closed }

// fail ends the Conn, once. Each request gets the error, or ErrUnsent if no byte of it was written: that one may be
// sent again over another connection. The caller holds mu.
func (c *Conn) fail(cause error) {
	if c.err != nil {
		return
	}
	c.err = fmt.Errorf("%w: %w", ErrBroken, cause)
	_ = c.raw.Close() // the error of Close adds nothing to cause
	for p := c.queue.pop(); p != nil; p = c.queue.pop() {
		p.err = c.err
		if p.first > c.sent {
			p.err = conn.ErrUnsent
		}
		p.finish()
		p.rouse()
	}
	c.owed = 0
	for x := c.awaiters.first; x != nil; x = x.next {
		x.rouse()
	}
	c.idling.stop()
	c.pulsing.stop()
	close(c.closed)
}

// handOn makes sure that somebody does what is left to do when a goroutine leaves: write, then read. It prefers a
// goroutine that waits anyway, and else the Conn does it. The caller holds mu.
func (c *Conn) handOn() {
	if c.err != nil {
		return
	}
	c.handOnWriting()
	switch {
	case c.reader != nil, c.summon():
	case c.awaiters.first != nil:
		c.awaiters.first.rouse()
	default:
		c.readIdle()
	}
}

// handOnWriting is handOn for the writing. The caller holds mu.
func (c *Conn) handOnWriting() {
	if c.err == nil && c.flusher == nil && !c.gathering && c.isBehind() && !c.summon() {
		c.work.Add(1)
		c.flusher = &c.resting // now, so that no newcomer writes as well
		go c.flushAside()      // ends with the write, or with the connection
	}
}

// summon wakes a parked request so that it looks for work, and reports whether there is one. It takes the last of the
// queue: that one reads for all others before its own answer comes. The caller holds mu.
func (c *Conn) summon() bool {
	for i := c.queue.n - 1; i >= 0; i-- {
		if p := c.queue.at(i); p.parked {
			p.summoned = true
			p.rouse()
			return true
		}
	}
	return false
}

// interrupt runs when the context of x has ended, so that a read does not keep it.
func (c *Conn) interrupt(x *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reader == x {
		c.interruptReader()
	}
}

// interruptReader ends a read that is under way, by a deadline in the past. The caller holds mu.
func (c *Conn) interruptReader() {
	c.stale = true
	_ = c.raw.SetReadDeadline(longAgo) // fails only when the connection has ended
}
