package board

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
)

// ErrClosed is returned by a Poller that was closed.
var ErrClosed = errors.New("board: the poller is closed")

// Poller looks again and again while somebody reads, and remembers what has changed. It is safe for concurrent use.
type Poller struct {
	client *interlock.Client
	opts   Options

	ctx    context.Context //nolint:containedctx // of looks, which belong to no single reader; ended by Close
	cancel context.CancelFunc
	work   sync.WaitGroup // looks, and the loop
	hurry  chan struct{}  // has one if the next look is not to wait for its time

	mu       sync.Mutex // guards what follows; nothing is waited for under it
	closed   bool
	looping  bool // the goroutine of loop runs, or is about to
	underWay *look
	readers  map[*Reader]struct{}
	history  history
}

// look is a look that is under way.
type look struct{ done chan struct{} }

// NewPoller returns a Poller of what c's engine tells. Nothing is looked at until somebody reads. Close the Poller
// before the client.
func NewPoller(c *interlock.Client, opts *Options) *Poller {
	p := &Poller{
		client: c, opts: opts.withDefaults(), hurry: make(chan struct{}, 1), readers: make(map[*Reader]struct{}),
		history: history{endings: make(map[endingHold]*ending)},
	}
	p.ctx, p.cancel = context.WithCancel(context.Background()) //nolint:forbidigo // lives as long as the poller
	return p
}

// Close ends what is under way, and tells readers: their Changed is closed. It returns when no goroutine of p runs any
// more.
func (p *Poller) Close() {
	p.mu.Lock()
	if !p.closed {
		p.closed = true
		p.cancel()
		for r := range p.readers {
			close(r.news)
		}
		clear(p.readers)
	}
	p.mu.Unlock()
	p.work.Wait()
}

// Now returns a board that is not older than one pause between looks. It looks, or waits for the look that is under
// way, if the latest is older. An engine that does not answer is no error but on the board.
func (p *Poller) Now(ctx context.Context) (*Board, error) {
	p.mu.Lock()
	if p.closed {
		p.mu.Unlock()
		return nil, ErrClosed
	}
	if b := p.history.board; b != nil {
		pause := max(p.opts.Interval, rest*time.Duration(b.TookMs)*time.Millisecond)
		if time.Since(b.Tried) <= pause {
			p.mu.Unlock()
			return b, nil
		}
	}
	l := p.look()
	p.mu.Unlock()
	select {
	case <-l.done:
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil, ErrClosed
	}
	return p.history.board, nil
}

// Tell adds an event that this program knows of without a look, such as a loss that an Observer was told of. Its time
// is now.
func (p *Poller) Tell(e Event) {
	p.mu.Lock()
	defer p.mu.Unlock()
	e.Time, e.After = instant(time.Now()), time.Time{}
	p.history.tell(e)
	p.tellReaders()
}

// Break has ask end the hold with that token, which is the event's, and tells of it unless ask fails. A look that shows
// the end of the hold meanwhile, or later, does not tell of it as well. After a success a look comes soon.
func (p *Poller) Break(e Event, ask func() error) error {
	p.mu.Lock()
	ending := p.history.asking(&e)
	p.mu.Unlock()
	err := ask()
	p.mu.Lock()
	defer p.mu.Unlock()
	if err != nil {
		if p.history.refused(&e, ending) {
			p.tellReaders()
		}
		return err
	}
	p.history.broke(e, ending)
	p.tellReaders()
	select {
	case p.hurry <- struct{}{}:
	default: // there is one already
	}
	return nil
}

// look returns the look that is under way, after it has started one if there is none. The caller holds p.mu.
func (p *Poller) look() *look {
	if p.underWay != nil {
		return p.underWay
	}
	l := &look{make(chan struct{})}
	p.underWay = l
	p.work.Go(func() { // ends with the engine's answer, the timeout or Close
		began := time.Now()
		b := take(p.ctx, p.client, &p.opts)
		p.mu.Lock()
		defer p.mu.Unlock()
		p.underWay = nil
		if !p.closed {
			p.history.look(b, began)
			p.tellReaders()
		}
		close(l.done)
	})
	return l
}

// tellReaders wakes all who read. The caller holds p.mu.
func (p *Poller) tellReaders() {
	if p.history.board == nil {
		return
	}
	for r := range p.readers {
		r.tell()
	}
}

// loop looks for as long as anybody reads.
func (p *Poller) loop() {
	for {
		began := time.Now()
		p.mu.Lock()
		if p.closed || len(p.readers) == 0 {
			p.looping = false
			p.mu.Unlock()
			return
		}
		l := p.look()
		p.mu.Unlock()
		<-l.done
		p.wait(p.pause(time.Since(began)))
	}
}

// rest is how much longer than a look the pause after it is at least. So a server that has to go through much for a
// look, as Redis through all its keys, does so for a fifth of the time at most.
const rest = 4

// pause is the time from a look that took so long to the next one. One that has failed may have been short of an answer
// for no other reason than that the engine was away, so the next one comes sooner.
func (p *Poller) pause(took time.Duration) time.Duration {
	p.mu.Lock()
	defer p.mu.Unlock()
	if b := p.history.board; b == nil || b.Error != "" {
		return max(p.opts.Interval, took)
	}
	return max(p.opts.Interval, rest*took)
}

// wait waits until the next look is due.
func (p *Poller) wait(pause time.Duration) {
	t := time.NewTimer(pause)
	defer t.Stop()
	select {
	case <-t.C:
	case <-p.hurry:
	case <-p.ctx.Done():
	}
}

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
