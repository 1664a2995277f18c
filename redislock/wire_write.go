package redislock

import "runtime"

const (
	// wireRounds is how often one goroutine writes before another takes over: meanwhile its own answer may have come.
	wireRounds = 4

	// wireYields is how often who writes lets others go first. Each time costs a turn of the scheduler's queue.
	wireYields = 2

	// wireKeep is how large a buffer may be that is kept for the next time.
	wireKeep = 64 << 10
)

// flush writes what there is to be written: until the next tick at the latest, and no longer than ended returns nil. Without
// ended it is the wire itself that writes, until nothing is left. It is called under mu.
func (w *wire) flush(x *waiter, ended func() error) {
	aside := ended == nil
	if w.crowd && !aside && !w.gathering && !w.gather() {
		return
	}
	w.flusher = x
	for round := 0; w.isBehind() && w.err == nil; round++ {
		if !aside && (round >= wireRounds && w.summon() || ended() != nil) {
			break
		}
		if !w.write() && !aside {
			break
		}
	}
	w.flusher = nil
}

// gather lets those who were roused together go first, as they soon have more to send, as long as they bring something: one write
// costs as much as ten small scripts. It reports false if one of them writes: a bundle that is full is sent at once, so that the server
// has something to do while the next is gathered. It is called under mu, and unlocks it meanwhile.
func (w *wire) gather() bool {
	w.gathering = true
	for size, i := 0, 0; i < wireYields && w.flusher == nil && w.unsealed() > size; i++ {
		size = w.unsealed()
		w.mu.Unlock()
		runtime.Gosched()
		w.mu.Lock()
	}
	w.gathering, w.crowd = false, false
	return w.flusher == nil
}

// isBehind reports whether there is something to be written. It is called under mu.
func (w *wire) isBehind() bool {
	return w.behind || len(w.out) > 0 || w.gathered.n > 0 && !w.gathered.waits()
}

// unsealed grows with what there is to be written. It is called under mu.
func (w *wire) unsealed() int { return len(w.out) + w.gathered.n }

// write writes once. It reports false if the server did not take everything by the next tick. It is called under mu.
func (w *wire) write() bool {
	w.keepTime()
	if !w.tick.Equal(w.writeDeadline) { // set by nobody else: a deadline that moves on does not end a write under way
		w.writeDeadline = w.tick
		_ = w.raw.SetWriteDeadline(w.tick) // fails only when the connection has ended
	}
	w.seal()
	w.full = false
	b := w.out
	w.out, w.spare = w.spare[:0], nil
	w.sent += uint64(len(b)) // in case that somebody finds the connection broken meanwhile
	w.mu.Unlock()
	n, err := len(b), error(nil)
	if n > 0 {
		n, err = w.conn.Write(b)
	} else {
		err = w.raw.catchUp()
	}
	w.mu.Lock()
	if cap(b) <= wireKeep {
		w.spare = b[:0]
	}
	w.behind = w.raw.isBehind()
	if err != nil {
		w.sent -= uint64(len(b) - n)
		w.fail(err)
	}
	return err == nil && !w.behind
}

// flushAside writes what those have left whose contexts have ended. It may take until the connection ends.
func (w *wire) flushAside() {
	defer w.work.Done()
	w.mu.Lock()
	defer w.mu.Unlock()
	w.flush(&w.resting, nil)
	w.handOn()
}
