// Reading: one goroutine at a time reads and hands out answers (to call.go) and pushes (to await.go and pushed).
// message.go decodes.

package resp

import (
	"bytes"
	"errors"
	"os"
	"time"
)

const (
	// idleTime is how long no goroutine must have wanted to read before the Conn itself does. Goroutines that wait for
	// a push read themselves, so only news that nobody waits for can be late. Each time the timer fires, Go's scheduler
	// wakes a further thread, which at 2 ms makes calls an eighth slower.
	idleTime = 25 * time.Millisecond

	// tickTime is about how late a call may see that its context has ended. To be told at once would cost each call
	// more than all its other work on this side.
	tickTime = 20 * time.Millisecond

	// After mostPulses pulses without a byte, while answers are owed, the connection counts as broken: 10 to 12.5 s.
	pulseTime, mostPulses = 2500 * time.Millisecond, 4
)

// longAgo is the deadline that interrupts a read.
var longAgo = time.Unix(1, 0)

// read reads once in the role of the reader, which must be free, and hands out what came. It blocks until something
// comes, until the given instant unless that is zero, until interruptReader, or until the next tick if x or parked
// requests need ticks. The caller holds mu, which is unlocked during the read.
func (c *Conn) read(x *waiter, until time.Time, ticks bool) {
	c.reader, c.ticks = x, ticks || c.trusting > 0
	c.reads++
	c.keepTime()
	if c.ticks && (until.IsZero() || c.tick.Before(until)) {
		until = c.tick
	}
	c.setDeadline(until)
	c.mu.Unlock()
	n, err := c.conn.Read(c.input.space())
	c.mu.Lock()
	if n > 0 {
		c.received++
		c.input.end += n
		if bad := c.drain(); bad != nil {
			err = bad // what came before it has been handed out
		}
	}
	c.reader, c.ticks = nil, false
	switch {
	case err == nil:
	case errors.Is(err, os.ErrDeadlineExceeded): // a reached deadline must be set anew
		c.stale = true
	default:
		c.fail(err)
	}
}

// keepTime wakes those whose contexts have ended, once a tick. It is called before each read and write, and neither
// lasts beyond a tick while somebody trusts in that. So a parked request need not watch its own context, which would
// cost each call a select. The caller holds mu.
func (c *Conn) keepTime() {
	now := time.Now()
	if now.Before(c.tick) {
		return
	}
	c.tick = now.Add(tickTime)
	for i := range c.queue.n {
		if p := c.queue.at(i); p.trusts && p.ctx.Err() != nil {
			p.rouse()
		}
	}
}

// setDeadline sets the deadline of the reads that follow. It also undoes an interruption that came too late for the
// last reader.
func (c *Conn) setDeadline(t time.Time) {
	if !c.stale && t.Equal(c.deadline) {
		return
	}
	c.stale, c.deadline = false, t
	_ = c.raw.SetReadDeadline(t) // fails only when the connection has ended
}

// drain hands out all whole messages. The reader calls it under mu, which is unlocked meanwhile.
func (c *Conn) drain() error {
	var few [16]*request
	// To be roused without mu: they would wake up only to wait for it.
	ready := few[:0]
	defer func() {
		if len(ready) == 0 {
			return
		}
		c.crowd = true
		c.mu.Unlock()
		for _, p := range ready {
			p.rouse()
		}
		c.mu.Lock()
	}()
	for c.err == nil {
		m, err := c.input.next()
		if m == nil {
			return err
		}
		if m[0] == '>' {
			ready, err = c.takePush(m, ready)
		} else {
			ready, err = c.answer(m, ready)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// answer gives an answer to the request that it is for, the first of the queue. Requests that are complete with it are
// appended to ready. The caller holds mu.
func (c *Conn) answer(m []byte, ready []*request) ([]*request, error) {
	p, doubtful := c.queue.front(), c.doubtful
	c.doubtful = false
	if p == nil || p.first > c.sent || doubtful && isRefusalOfASlot(m) {
		return ready, errUninvited
	}
	if p.taught {
		p.taught = false
		// A server that refuses the source gets no bundles.
		c.gathered.on = c.gathered.on && m[0] != '-'
		return c.count(p, ready), nil
	}
	if p.bundled > 0 {
		c.gathered.isAnswered(p.sealed)
	}
	switch {
	case p.bundled > 1:
		return c.unbundle(p.bundled, m, ready)
	case p.given: // nobody waits for it any more
	case p.listed:
		value, err := decode(m)
		if errors.Is(err, errProtocol) {
			return ready, err
		}
		p.list = append(p.list, result{value, err})
	default:
		p.text, p.err = decodeText(m)
		if errors.Is(p.err, errProtocol) {
			return ready, p.err
		}
	}
	return c.count(p, ready), nil
}

// count counts an answer of the first request of the queue. If it was the last of that request, the request is done and
// appended to ready, unless it is the reader's own, who sees that anyway. The caller holds mu.
func (c *Conn) count(p *request, ready []*request) []*request {
	c.owed--
	// With some slack, so that waiting senders do not wake for each answer.
	if c.room != nil && c.owed < mostOwed*3/4 {
		close(c.room)
		c.room = nil
	}
	if p.left--; p.left > 0 {
		return ready
	}
	c.queue.pop()
	c.answered++
	p.finish()
	if &p.waiter == c.reader {
		return ready
	}
	return append(ready, p)
}

// isRefusalOfASlot reports whether an answer is what a node of a Cluster says to SUNSUBSCRIBE in a slot that it has
// lost.
func isRefusalOfASlot(m []byte) bool {
	return bytes.HasPrefix(m, []byte("-MOVED ")) || bytes.HasPrefix(m, []byte("-CLUSTERDOWN "))
}

// takePush handles a push. If it confirms a subscription, the request for that is appended to ready.
//
// A node that loses a slot ends its subscriptions by the same push, unasked. If we have just asked for the same, that
// push is taken for the confirmation. Then a refusal follows in the place of ours, which nobody expects: it is the next
// answer. A refusal of the next request looks the same. So after such a confirmation a refusal ends the connection.
func (c *Conn) takePush(m []byte, ready []*request) ([]*request, error) {
	c.mu.Unlock()
	kind, channel, message, err := c.input.push(m)
	if err == nil {
		c.pushed(kind, channel, message)
	}
	c.mu.Lock()
	if p := c.queue.front(); err == nil && p != nil && p.confirm != "" && p.confirm == kind && p.channel == channel {
		c.doubtful = kind == "sunsubscribe"
		return c.count(p, ready), nil
	}
	return ready, err
}

// readIdle makes the Conn read by itself: in a moment, or at once if it attends to pushes. The caller holds mu.
func (c *Conn) readIdle() {
	switch {
	case c.attends && !c.attending:
		c.attending = true
		c.work.Add(1)
		go c.attend() // ends when nobody wants that any more, or with the connection
	case !c.attends && !c.idling.isSet:
		c.idleReads = c.reads
		c.idling.set(idleTime)
	}
}

// Attend says whether pushes must be seen at once also while nobody waits for one. A goroutine of the Conn then reads,
// which must be woken for each answer: calls meanwhile pay for that.
func (c *Conn) Attend(on bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attends = on
	// Otherwise whoever is inside calls readIdle when it leaves.
	if on && c.err == nil && c.reader == nil && c.awaiters.first == nil && c.queue.n == 0 {
		c.readIdle()
	}
}

// attend is the goroutine that readIdle starts.
func (c *Conn) attend() {
	defer c.work.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.attending = false
	if c.reader == nil {
		c.readAlone()
	}
}

// idle reads if nobody else has for a moment. The timer's goroutine calls it under mu.
func (c *Conn) idle() {
	if c.reader != nil {
		return // the reader calls readIdle when it leaves
	}
	if c.reads != c.idleReads { // somebody has read meanwhile: wait once more
		c.readIdle()
		return
	}
	c.readAlone()
}

// readAlone reads until a goroutine comes that may want to read, which is seen by an answer. While pushes must be seen
// at once, it goes on unless somebody waits for a push. The caller holds mu.
func (c *Conn) readAlone() {
	for answered := c.answered; c.err == nil && c.awaiters.first == nil && (c.attends || c.answered == answered); {
		c.read(&c.resting, time.Time{}, false)
		c.handOnWriting()
	}
	c.handOn()
}

// pulse finds out whether the server still answers. Any byte counts. The timer's goroutine calls it under mu.
func (c *Conn) pulse() {
	if c.owed == 0 {
		return
	}
	if c.received != c.pulseReceived {
		c.pulseReceived, c.silent = c.received, 0
	} else if c.silent++; c.silent >= mostPulses {
		c.fail(errSilent)
		return
	}
	c.pulsing.set(pulseTime)
}
