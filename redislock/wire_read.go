package redislock

import (
	"errors"
	"os"
	"time"
)

const (
	// wireIdle is how long nobody must have wanted to read before the wire itself does. Who waits for a push reads itself,
	// so what is late is news that nobody waits for. Each time the timer fires, the scheduler of Go wakes a further thread,
	// which at 2 ms makes calls an eighth slower.
	wireIdle = 25 * time.Millisecond

	// wireTick is how late a call may see that its context has ended, or a bit more. To be told at once would cost each call
	// more than all its other work on this side.
	wireTick = 20 * time.Millisecond

	// After wirePulses pulses without a byte, while answers are owed, the connection counts as broken: 10 to 12.5 s.
	wirePulse, wirePulses = 2500 * time.Millisecond, 4
)

// longAgo is the deadline that interrupts a read.
var longAgo = time.Unix(1, 0)

// read reads once as the reader, who must be nobody else, and hands out what came. It waits until something comes, until
// the given instant unless that is zero, until interruptReader, or until the next tick, if x or others need that. It is
// called under mu.
func (w *wire) read(x *waiter, until time.Time, ticks bool) {
	w.reader, w.ticks = x, ticks || w.trusting > 0
	w.reads++
	w.keepTime()
	if w.ticks && (until.IsZero() || w.tick.Before(until)) {
		until = w.tick
	}
	w.setDeadline(until)
	w.mu.Unlock()
	n, err := w.conn.Read(w.input.space())
	w.mu.Lock()
	if n > 0 {
		w.received++
		w.input.end += n
		if bad := w.drain(); bad != nil {
			err = bad
		}
	}
	w.reader, w.ticks = nil, false
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded):
		w.stale = true
	default:
		w.fail(err)
	}
}

// keepTime wakes those whose contexts have ended, once a tick. Whoever reads or writes calls it before, and is not kept for
// longer than a tick: a write never, a read if it is asked to. It is called under mu.
func (w *wire) keepTime() {
	now := time.Now()
	if now.Before(w.tick) {
		return
	}
	w.tick = now.Add(wireTick)
	for i := range w.queue.n {
		if p := w.queue.at(i); p.trusts && p.ctx.Err() != nil {
			p.rouse()
		}
	}
}

// setDeadline sets the deadline of the reads that follow. A late interruption of the last reader is undone by it.
func (w *wire) setDeadline(t time.Time) {
	if !w.stale && t.Equal(w.deadline) {
		return
	}
	w.stale, w.deadline = false, t
	_ = w.raw.SetReadDeadline(t) // fails only when the connection has ended
}

// drain hands out the messages that are there in full. It is called under mu, by the reader, and unlocks mu meanwhile.
func (w *wire) drain() error {
	var few [16]*request
	ready := few[:0] // to be roused without mu, or they would wait for it
	defer func() {
		if len(ready) == 0 {
			return
		}
		w.crowd = true
		w.mu.Unlock()
		for _, p := range ready {
			p.rouse()
		}
		w.mu.Lock()
	}()
	for w.err == nil {
		m, err := w.input.next()
		if m == nil {
			return err
		}
		if m[0] == '>' {
			ready, err = w.pushed(m, ready)
		} else {
			ready, err = w.answer(m, ready)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answer gives an answer to whom it is for. Requests that are done by it are appended to ready.
func (w *wire) answer(m []byte, ready []*request) ([]*request, error) {
	p := w.queue.front()
	if p == nil || p.first > w.sent {
		return ready, errUninvited
	}
	if p.bundled > 0 {
		w.gathered.isAnswered(p.sealed)
	}
	switch {
	case p.bundled > 1:
		return w.unbundle(p.bundled, m, ready)
	case p.given:
	case p.listed:
		value, err := decode(m)
		if errors.Is(err, errProtocol) {
			return ready, err
		}
		p.list = append(p.list, wireAnswer{value, err})
	default:
		p.text, p.err = decodeText(m)
		if errors.Is(p.err, errProtocol) {
			return ready, p.err
		}
	}
	return w.count(p, ready), nil
}

// count counts an answer of the first request of the queue, and appends that to ready if it was its last, unless it is that of
// who reads, who sees that anyway.
func (w *wire) count(p *request, ready []*request) []*request {
	w.owed--
	if w.room != nil && w.owed < wireOwed*3/4 {
		close(w.room)
		w.room = nil
	}
	if p.left--; p.left > 0 {
		return ready
	}
	w.queue.pop()
	w.answered++
	p.finish()
	if &p.waiter == w.reader {
		return ready
	}
	return append(ready, p)
}

// pushed takes a push. If it confirms a subscription the request that was for that is appended to ready.
func (w *wire) pushed(m []byte, ready []*request) ([]*request, error) {
	w.mu.Unlock()
	kind, channel, message, err := w.input.push(m)
	if err == nil {
		w.heard(kind, channel, message)
	}
	w.mu.Lock()
	if p := w.queue.front(); err == nil && p != nil && p.confirm != "" && p.confirm == kind && p.channel == channel {
		return w.count(p, ready), nil
	}
	return ready, err
}

// rest has the wire read by itself in a moment. It is called under mu.
func (w *wire) rest() {
	if !w.idling.isSet {
		w.idleReads = w.reads
		w.idling.set(wireIdle)
	}
}

// idle reads if nobody else has for a moment, until somebody is there who may want to. It is called under mu, in a
// goroutine of its own.
func (w *wire) idle() {
	if w.reader != nil {
		return // who calls rest again
	}
	if w.reads != w.idleReads {
		w.rest()
		return
	}
	for answered := w.answered; w.err == nil && w.answered == answered && w.awaiters.first == nil; {
		w.read(&w.resting, time.Time{}, false)
		w.handOnWriting()
	}
	w.handOn()
}

// pulse finds out whether the server answers. It is called under mu.
func (w *wire) pulse() {
	if w.owed == 0 {
		return
	}
	if w.received != w.pulseReceived {
		w.pulseReceived, w.silent = w.received, 0
	} else if w.silent++; w.silent >= wirePulses {
		w.fail(errSilent)
		return
	}
	w.pulsing.set(wirePulse)
}
