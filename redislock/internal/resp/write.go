package resp

import "runtime"

const (
	// mostRounds is how often one goroutine writes before another takes over: meanwhile its own answer may have come.
	mostRounds = 4

	// mostYields is how often who writes lets others go first. Each time costs a turn of the scheduler's queue.
	mostYields = 2

	// largestKept is how large a buffer may be that is kept for the next time.
	largestKept = 64 << 10
)

// flush writes what there is to be written: until the next tick at the latest, and no longer than ended returns nil.
// Without ended it is the Conn itself that writes, until nothing is left. It is called under mu.
func (c *Conn) flush(x *waiter, ended func() error) {
	aside := ended == nil
	if c.crowd && !aside && !c.gathering && !c.gather() {
		return
	}
	c.flusher = x
	for round := 0; c.isBehind() && c.err == nil; round++ {
		if !aside && (round >= mostRounds && c.summon() || ended() != nil) {
			break
		}
		if !c.write() && !aside {
			break
		}
	}
	c.flusher = nil
}

// gather lets those who were roused together go first, as they soon have more to send, as long as they bring something:
// one write costs as much as ten small scripts. It reports false if one of them writes: a bundle that is full is sent
// at once, so that the server has something to do while the next is gathered. It is called under mu, and unlocks it
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

// isBehind reports whether there is something to be written. It is called under mu.
func (c *Conn) isBehind() bool {
	return c.behind || len(c.out) > 0 || c.gathered.n > 0 && !c.gathered.waits()
}

// unsealed grows with what there is to be written. It is called under mu.
func (c *Conn) unsealed() int { return len(c.out) + c.gathered.n }

// write writes once. It reports false if the server did not take everything by the next tick. It is called under mu.
func (c *Conn) write() bool {
	c.keepTime()
	if !c.tick.Equal(c.writeDeadline) { // set by nobody else: a deadline that moves on does not end a write under way
		c.writeDeadline = c.tick
		_ = c.raw.SetWriteDeadline(c.tick) // fails only when the connection has ended
	}
	c.seal()
	c.full = false
	b := c.out
	c.out, c.spare = c.spare[:0], nil
	c.sent += uint64(len(b)) // in case that somebody finds the connection broken meanwhile
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
		c.sent -= uint64(len(b) - n)
		c.fail(err)
	}
	return err == nil && !c.behind
}

// flushAside writes what those have left whose contexts have ended. It may take until the connection ends.
func (c *Conn) flushAside() {
	defer c.work.Done()
	c.mu.Lock()
	defer c.mu.Unlock()
	c.flush(&c.resting, nil)
	c.handOn()
}
