// Writing: one goroutine writes for all. finish in call.go calls flush; what a leaving goroutine leaves is written
// aside.

package resp

import "runtime"

const (
	// mostRounds is how many times one goroutine writes before another takes over: its own answer may have come
	// meanwhile.
	mostRounds = 4

	// mostYields is how often the writer lets others go first. Each time costs a turn of the scheduler's queue.
	mostYields = 2

	// largestKept is the size in bytes up to which a buffer is kept for the next time.
	largestKept = 64 << 10
)

// flush writes what is due, but not beyond the next tick, and not after ended returns an error. Without ended
// it is the Conn itself that writes, until nothing is left. The caller holds mu.
func (c *Conn) flush(x *waiter, ended func() error) {
	aside := ended == nil
	// After several were roused together, they will have more to send in a moment.
	if c.crowd && !aside && !c.gathering && !c.gather() {
		return
	}
	c.flusher = x
	for round := 0; c.isBehind() && c.err == nil; round++ {
		// Another takes over, or this one's context has ended.
		if !aside && (round >= mostRounds && c.summon() || ended() != nil) {
			break
		}
		if !c.write() && !aside { // the server takes no more: its own answer may need reading first
			break
		}
	}
	c.flusher = nil
}

// gather lets those that were roused together run first, since they soon have more to send, for as long as they bring
// something: one write costs as much as ten small scripts. It reports false if one of them writes: a full bundle is
// sent at once, so that the server has work while the next one is gathered. The caller holds mu, which is unlocked
// meanwhile.
func (c *Conn) gather() bool {
	c.gathering = true
	for size, i := 0, 0; i < mostYields && c.flusher == nil && c.unsealed() > size; i++ {
		size = c.unsealed()
		c.mu.Unlock()
		runtime.Gosched()
		c.mu.Lock()
	}
	c.gathering, c.crowd = false, false
	return c.flusher == nil
}

// isBehind reports whether there is something to be written now. The caller holds mu.
func (c *Conn) isBehind() bool {
	return c.behind || len(c.out) > 0 || c.gathered.n > 0 && !c.gathered.waits()
}

// unsealed grows with what is due. The caller holds mu.
func (c *Conn) unsealed() int { return len(c.out) + c.gathered.n }

// write writes once. It reports false if the server did not take everything by the next tick. The caller holds mu,
// which is unlocked during the write.
func (c *Conn) write() bool {
	c.keepTime()
	// Nothing else sets this deadline. A deadline that moves on does not end a write under way.
	if !c.tick.Equal(c.writeDeadline) {
		c.writeDeadline = c.tick
		_ = c.raw.SetWriteDeadline(c.tick) // fails only when the connection has ended
	}
	c.seal()
	c.full = false
	b := c.out
	c.out, c.spare = c.spare[:0], nil
	// Counted before the write: if another goroutine finds the connection broken meanwhile, these may have been sent.
	c.sent += uint64(len(b))
	c.mu.Unlock()
	n, err := len(b), error(nil)
	if n > 0 {
		n, err = c.conn.Write(b)
	} else {
		err = c.raw.catchUp()
	}
	c.mu.Lock()
	if cap(b) <= largestKept {
		c.spare = b[:0]
	}
	c.behind = c.raw.isBehind()
	if err != nil {
		// The rest has certainly not been sent.
		c.sent -= uint64(len(b) - n)
		c.fail(err)
	}
	return err == nil && !c.behind
}

// flushAside writes what goroutines have left whose contexts ended. It runs in a goroutine of its own, and may last
// until the connection ends.
func (c *Conn) flushAside() {
	defer c.work.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush(&c.resting, nil)
	c.handOn()
}
