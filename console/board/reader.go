package board

import "time"

// Reader follows the boards of a Poller. While there is one, the Poller looks. Its methods may be called from one
// goroutine at a time; a reader that is slow misses nothing, because what it has missed is one update however long it
// was.
type Reader struct {
	poller *Poller
	news   chan struct{}
	seen   uint64
}

// Reader returns a reader who has the board of that revision of the same Poller, or none at 0. Close it. The first
// update comes at once if there is a board of any age; it is marked as stale if it is of a time when nobody read.
func (p *Poller) Reader(revision uint64) *Reader {
	r := &Reader{p, make(chan struct{}, 1), revision}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		close(r.news)
		return r
	}
	p.readers[r] = struct{}{}
	if b := p.history.board; b != nil {
		p.history.age(p.opts.Interval)
		r.tell()
	}
	if !p.looping {
		p.looping = true
		p.work.Go(p.loop) // ends soon after the last reader is closed
	}
	return r
}

// age marks a board as stale that was not followed by another in time.
func (h *history) age(interval time.Duration) {
	took := time.Duration(h.board.TookMs) * time.Millisecond
	if h.board.Stale || time.Since(h.board.Tried) <= 2*(max(interval, rest*took)+took) {
		return
	}
	b := *h.board
	b.Stale = true
	h.board = &b
}

// Changed receives when Next has something, and is closed by Poller.Close.
func (r *Reader) Changed() <-chan struct{} { return r.news }

// Next returns what the reader has missed since the last update, and false if that is nothing.
func (r *Reader) Next() (Update, bool) {
	r.poller.mu.Lock()
	defer r.poller.mu.Unlock()
	h := &r.poller.history
	if h.board == nil || h.revision == r.seen {
		return Update{}, false
	}
	u := h.update(r.seen)
	r.seen = u.Revision
	return u, true
}

// Again returns an update in which nothing has changed, for a connection on which there must be something now and then.
// It returns false if the reader has missed something, or there is no board.
func (r *Reader) Again() (Update, bool) {
	r.poller.mu.Lock()
	defer r.poller.mu.Unlock()
	h := &r.poller.history
	if h.board == nil || h.revision != r.seen {
		return Update{}, false
	}
	return h.update(r.seen), true
}

// Close ends the reader.
func (r *Reader) Close() {
	r.poller.mu.Lock()
	defer r.poller.mu.Unlock()
	if _, reads := r.poller.readers[r]; reads {
		delete(r.poller.readers, r)
		close(r.news)
	}
}

// tell says that there is something, unless that was said and not yet heard. The caller holds Poller.mu.
func (r *Reader) tell() {
	select {
	case r.news <- struct{}{}:
	default: // said already
	}
}
