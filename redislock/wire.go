package redislock

import (
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
)

// wireOwed is how many answers a wire may be owed. Who wants to send more waits.
const wireOwed = 4096

var (
	errUninvited = errors.New("the server answered a question that nobody asked")
	errSilent    = errors.New("the server does not answer")
)

// wire is one RESP3 connection that many goroutines use at once, without goroutines of its own between them and the
// server: whoever comes does the work that is there to be done, for the others as well.
//
//   - Writing: who finds nobody writing writes everything that has gathered, and again until nothing is left.
//   - Reading: of those who wait for an answer ([wire.finish]) or a push ([wire.await]) one has the role of the reader. It
//     hands out what it reads until its own is there, and leaves. The role is free then, and another one is woken, unless
//     somebody newly come takes it first. So an answer that one goroutine waits for alone costs no change of goroutines.
//   - When nobody has wanted the role for a moment a goroutine of the wire takes it ([wire.idle]): pushes and the end of the
//     connection are seen then too.
//
// It ends when the connection breaks, with everything that was under way, and is not mended.
type wire struct {
	conn  net.Conn                            // with TLS, if there is TLS
	raw   *wireSocket                         // without
	heard func(kind, channel, message string) // takes pushes, in their order; it must not call the wire

	closed chan struct{}  // closed by fail
	work   sync.WaitGroup // timers that are set, and what they have started

	requests, waiters sync.Pool // that nobody uses

	// mu guards what follows. Nothing is waited for under it, and heard is not called.
	mu  sync.Mutex
	err error // why it ended

	out, spare []byte        // commands that are not written yet; the buffer that is used next
	sent       uint64        // how many bytes were given to conn, in all
	flusher    *waiter       // who writes,
	behind     bool          // raw has kept something
	crowd      bool          // several have got their answers at once
	gathering  bool          // somebody lets them go first, to write after them
	full       bool          // a bundle in out is not to wait for that
	gathered   wireBundle    // requests that are to be sent after out
	queue      wireQueue     // requests whose answers have not come yet, in the order of out
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
	answered      uint64    // how many requests were
	awaiters      waiterList
	resting       waiter // the wire itself, when it reads, or writes for nobody

	idling, pulsing wireTimer
	idleReads       uint64 // reads, when idling was set
	pulseReceived   uint64 // received, at the last pulse
	silent          int    // how many pulses there were since something was received

	input wireInput // the reader's, who uses it without mu
}

// newWire returns a wire over a connection: raw, or what encrypts it.
func newWire(conn net.Conn, raw *wireSocket, heard func(kind, channel, message string)) *wire {
	w := &wire{conn: conn, raw: raw, heard: heard, closed: make(chan struct{})}
	w.idling.init(w, w.idle)
	w.pulsing.init(w, w.pulse)
	w.mu.Lock()
	defer w.mu.Unlock()
	w.idling.set(wireIdle)
	return w
}

// Close ends the connection and what is under way. It returns when nothing of the wire is left. It must not be called by
// heard.
func (w *wire) Close() {
	w.mu.Lock()
	w.fail(net.ErrClosed)
	w.mu.Unlock()
	w.work.Wait()
}

// fail ends the wire. It is called under mu.
func (w *wire) fail(cause error) {
	if w.err != nil {
		return
	}
	w.err = fmt.Errorf("%w: %w", errBroken, cause)
	_ = w.raw.Close() // nothing is lost that is not lost anyway
	for p := w.queue.pop(); p != nil; p = w.queue.pop() {
		p.err = w.err
		if p.first > w.sent {
			p.err = conn.ErrUnsent
		}
		p.finish()
		p.rouse()
	}
	w.owed = 0
	for x := w.awaiters.first; x != nil; x = x.next {
		x.rouse()
	}
	w.idling.stop()
	w.pulsing.stop()
	close(w.closed)
}

// handOn sees to it that what there is to do is done by somebody, when a goroutine leaves. It is called under mu.
func (w *wire) handOn() {
	if w.err != nil {
		return
	}
	w.handOnWriting()
	switch {
	case w.reader != nil, w.summon():
	case w.awaiters.first != nil:
		w.awaiters.first.rouse()
	default:
		w.rest()
	}
}

// handOnWriting is handOn for what there is to be written. It is called under mu.
func (w *wire) handOnWriting() {
	if w.err == nil && w.flusher == nil && !w.gathering && w.isBehind() && !w.summon() {
		w.work.Add(1)
		w.flusher = &w.resting // at once, so that nobody newly come writes what others have left
		go w.flushAside()      // ends with the write, or with the connection
	}
}

// summon wakes one who waits for an answer, to look for work, and reports whether there is one. It is the last one, who
// reads for all the others before its own answer comes.
func (w *wire) summon() bool {
	for i := w.queue.n - 1; i >= 0; i-- {
		if p := w.queue.at(i); p.parked {
			p.summoned = true
			p.rouse()
			return true
		}
	}
	return false
}

// interrupt is called when the context of x has ended, so that it is not kept by a read.
func (w *wire) interrupt(x *waiter) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.reader == x {
		w.interruptReader()
	}
}

// interruptReader makes a read that is under way end. It is called under mu.
func (w *wire) interruptReader() {
	w.stale = true
	_ = w.raw.SetReadDeadline(longAgo) // fails only when the connection has ended
}
