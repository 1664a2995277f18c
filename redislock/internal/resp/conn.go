package resp

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
)

// mostOwed is how many answers a Conn may be owed. Who wants to send more waits.
const mostOwed = 4096

var (
	// ErrBroken says that the connection has ended, and that what was under way may have run.
	ErrBroken = errors.New("the connection broke")

	errUninvited = errors.New("the server answered a question that nobody asked")
	errSilent    = errors.New("the server does not answer")
)

// Conn is one RESP3 connection that many goroutines use at once, without goroutines of its own between them and the
// server: whoever comes does the work that is there to be done, for the others as well.
//
//   - Writing: who finds nobody writing writes everything that has gathered, and again until nothing is left.
//   - Reading: of those who wait for an answer ([Conn.Call]) or a push ([Conn.Await]) one has the role of the
//     reader. It hands out what it reads until its own is there, and leaves. The role is free then, and another
//     one is woken, unless somebody newly come takes it first. So an answer that one goroutine waits for alone
//     costs no change of goroutines.
//   - When nobody has wanted the role for a moment a goroutine of the Conn takes it: pushes and the end of the
//     connection are seen then too. While somebody may be pushed to who does not wait (see [Conn.Attend]) it takes the
//     role at once, and keeps it.
//
// It ends when the connection breaks, with everything that was under way, and is not mended.
type Conn struct {
	conn net.Conn // with TLS, if there is TLS
	raw  *socket  // without
	// takes pushes, in their order, without mu; it must not wait for a call of the Conn
	pushed func(kind, channel, message string)

	closed chan struct{}  // closed by fail
	work   sync.WaitGroup // timers that are set, and what they have started

	requests, waiters sync.Pool // that nobody uses

	// mu guards what follows. Nothing is waited for under it, and pushed is not called.
	mu  sync.Mutex
	err error // why it ended

	out, spare []byte        // commands that are not written yet; the buffer that is used next
	sent       uint64        // how many bytes were given to conn, in all
	flusher    *waiter       // who writes,
	behind     bool          // raw has kept something
	crowd      bool          // several have got their answers at once
	gathering  bool          // somebody lets them go first, to write after them
	full       bool          // a bundle in out is not to wait for that
	gathered   bundle        // requests that are to be sent after out
	queue      queue         // requests whose answers have not come yet, in the order of out
	owed       int           // how many answers these are
	room       chan struct{} // if somebody waits to send: closed when owed has gone down

	reader        *waiter
	ticks         bool      // the reader stops at the next tick at the latest
	trusting      int       // how many are parked who trust in that
	tick          time.Time // when the next one is due
	deadline      time.Time // of conn, for reading
	writeDeadline time.Time // of conn, for writing
	stale         bool      // the deadline was reached, or set to interrupt the reader: it is not what deadline says
	reads         uint64    // how often somebody took the role
	received      uint64    // how often something came
	doubtful      bool      // what was taken for the end of a subscription may not have been asked for; see takePush
	answered      uint64    // how many requests were
	awaiters      waiterList
	resting       waiter // the Conn itself, when it reads, or writes for nobody

	idling, pulsing timer
	idleReads       uint64 // reads, when idling was set
	attends         bool   // pushes are to be seen at once, whoever is there
	attending       bool   // a goroutine comes that takes the role of the reader for that
	pulseReceived   uint64 // received, at the last pulse
	silent          int    // how many pulses there were since something was received

	input input // the reader's, who uses it without mu
}

// newConn returns a Conn over a connection: raw, or what encrypts it.
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

// Close ends the connection and what is under way. It returns when nothing of the Conn is left. It must not be called
// by what takes the pushes.
func (c *Conn) Close() {
	c.mu.Lock()
	c.fail(net.ErrClosed)
	c.mu.Unlock()
	c.work.Wait()
}

// Done is closed when the connection has ended.
func (c *Conn) Done() <-chan struct{} { return c.closed }

// fail ends the Conn. It is called under mu.
func (c *Conn) fail(cause error) {
	if c.err != nil {
		return
	}
	c.err = fmt.Errorf("%w: %w", ErrBroken, cause)
	_ = c.raw.Close() // nothing is lost that is not lost anyway
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

// handOn sees to it that what there is to do is done by somebody, when a goroutine leaves. It is called under mu.
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

// handOnWriting is handOn for what there is to be written. It is called under mu.
func (c *Conn) handOnWriting() {
	if c.err == nil && c.flusher == nil && !c.gathering && c.isBehind() && !c.summon() {
		c.work.Add(1)
		c.flusher = &c.resting // at once, so that nobody newly come writes what others have left
		go c.flushAside()      // ends with the write, or with the connection
	}
}

// summon wakes one who waits for an answer, to look for work, and reports whether there is one. It is the last one, who
// reads for all the others before its own answer comes.
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

// interrupt is called when the context of x has ended, so that it is not kept by a read.
func (c *Conn) interrupt(x *waiter) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.reader == x {
		c.interruptReader()
	}
}

// interruptReader makes a read that is under way end. It is called under mu.
func (c *Conn) interruptReader() {
	c.stale = true
	_ = c.raw.SetReadDeadline(longAgo) // fails only when the connection has ended
}
