package redlock

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// requestKey is what names a request: the same ID on two locks is two requests.
type requestKey struct {
	driver.Key
	id string
}

// claim is one request: while it is being acquired, as long as it is held, and until its release has reached every
// node.
type claim struct {
	d *Driver
	r driver.Request // as it was asked first, but for whom to tell; constant

	mu     sync.Mutex                     // guards what follows, and the votes of its rounds
	busy   bool                           // an Acquire is under way
	waits  func(*driver.HeldError)        // Request.Waiting of the latest Acquire
	loss   func(driver.LostReason, error) // its Request.Lost
	rounds int                            // how many there were
	rd     *round                         // the latest
	held   bool
	told   bool          // that it was lost
	answer driver.Grant  // once held
	lease  time.Duration // the longest that any node may keep it for without hearing of it again
	ending *ending       // once it is being released
}

// voteState is what a node has said to a round.
type voteState uint8

const (
	asked   voteState = iota
	queued            // behind somebody, and it will say when that is over
	granted           // it has voted for us
	refused           // of a try: somebody else is in the way
	failed            // it did not answer; it may have voted for us all the same
	ended             // it knows that the request is over, or the hold
	yielded           // we have given the vote back
	absent            // it was not asked, so nothing can be left there
)

// vote is what a round knows of one node.
type vote struct {
	state  voteState
	grant  driver.Grant
	held   *driver.HeldError // who is in the way there
	err    error
	broken bool // the node said that the hold had been ended from outside
	before bool // it was asked before, in this round, and what came of that is not known
	cancel context.CancelFunc
	done   chan struct{} // closed when the node's answer has been taken in
}

// round is one attempt at a majority. It shows the same ID to each node, which no other round of any client ever shows.
type round struct {
	c     *claim
	id    string
	began time.Time
	news  chan struct{} // has one place; a vote has changed

	// Guarded by claim.mu.
	votes    []vote
	enough   time.Time     // since when there is a majority; zero if there is none
	settled  time.Time     // since when it is certain that there will be none; zero if it is not
	patience time.Duration // for how long it keeps votes that are no majority
	yieldAt  time.Time     // when that is over; zero if there are none
	voted    int           // how many votes there were when yieldAt was set
	timed    bool          // a majority has answered
	told     driver.HeldError
	waits    bool // the caller was told that somebody is in the way
	waiting  func(*driver.HeldError)
}

// begin starts the next round, and asks all nodes at once. The caller holds c.mu.
func (c *claim) begin(patience time.Duration) *round {
	rd := &round{
		c: c, id: c.r.ID, began: time.Now(), news: make(chan struct{}, 1),
		votes: make([]vote, len(c.d.nodes)), patience: patience, waiting: c.waits,
	}
	if c.rounds > 0 {
		rd.id += "/" + strconv.Itoa(c.rounds)
	}
	c.rounds++
	c.rd = rd
	for i := range rd.votes {
		rd.ask(i, c.r.Try, nil)
	}
	return rd
}

// copied is a round that asks for what the claim's latest round has asked already. The caller holds c.mu.
func (c *claim) copied(waiting func(*driver.HeldError)) *round {
	rd := &round{
		c: c, id: c.rd.id, began: time.Now(), news: make(chan struct{}, 1),
		votes: make([]vote, len(c.d.nodes)), patience: longestPatience, waiting: waiting,
	}
	for i := range rd.votes {
		rd.ask(i, c.r.Try, c.rd.votes[i].done)
	}
	return rd
}

// ask asks one node for its vote, in a goroutine of its own, after an earlier question has ended.
// The caller holds claim.mu.
func (rd *round) ask(i int, try bool, after <-chan struct{}) {
	d, v := rd.c.d, &rd.votes[i]
	ctx, cancel := context.WithCancel(d.base)
	done := make(chan struct{})
	r := rd.request(i, try)
	v.before = v.before || after != nil && v.state != absent
	v.state, v.cancel, v.done = asked, cancel, done
	started := d.spawn(func() { // ends with the node's answer, or v.cancel, or Close
		defer close(done)
		defer cancel()
		if after != nil {
			select {
			case <-after:
			case <-ctx.Done(): // the node is asked all the same: it says so
			}
		}
		g, err := d.nodes[i].acquire(ctx, r)
		rd.answered(i, g, err)
	})
	if !started {
		cancel()
		close(done)
		v.state, v.err = failed, driver.ErrClosed
	}
}

// request is what a node is asked. The caller holds claim.mu.
func (rd *round) request(i int, try bool) *driver.Request {
	r := rd.c.r
	r.ID, r.Owner, r.Try = rd.id, shown(rd.id, r.Owner), try
	r.Waiting = func(held *driver.HeldError) { rd.queued(i, held) }
	r.Lost = func(reason driver.LostReason, cause error) { rd.lost(i, reason, cause) }
	return &r
}

// changed has whoever runs the round look again. The caller holds claim.mu.
func (rd *round) changed() {
	select {
	case rd.news <- struct{}{}:
	default: // it will look anyway
	}
}

// queued takes in that a node has put the request into its queue.
func (rd *round) queued(i int, held *driver.HeldError) {
	rd.c.mu.Lock()
	defer rd.c.mu.Unlock()
	if v := &rd.votes[i]; v.state == asked || v.state == queued {
		v.state, v.held = queued, held
		rd.changed()
	}
}

// answered takes in how a node's part of the round has ended.
func (rd *round) answered(i int, g driver.Grant, err error) {
	rd.c.mu.Lock()
	defer rd.c.mu.Unlock()
	v := &rd.votes[i]
	untouched := v.state == asked && !v.before && unsent(err)
	v.grant = g
	if err != nil || !v.broken { // else why it ended is known already
		v.err = err
	}
	v.state, v.held = stateOf(err)
	if untouched {
		v.state = absent
	}
	if v.broken && err == nil {
		v.state = ended
	}
	rd.changed()
}

// lost takes in that a node has ended the hold by itself. What is left may be no majority. The node tells the round
// that was first to ask it; if another has gone on with that one's request, its votes are those that count.
func (rd *round) lost(i int, reason driver.LostReason, cause error) {
	c := rd.c
	c.mu.Lock()
	why := &driver.LostError{Kind: c.r.Kind, Name: c.r.Name, Reason: reason, Cause: cause}
	rd.breaks(i, why)
	if rd != c.rd && rd.id == c.rd.id {
		rd = c.rd
		rd.breaks(i, why)
	}
	tell := c.loses(rd)
	c.mu.Unlock()
	if tell != nil {
		tell(reason, cause)
	}
}

// breaks takes a vote away, also one that is still to be answered. The caller holds claim.mu.
func (rd *round) breaks(i int, why error) {
	v := &rd.votes[i]
	v.broken, v.err = true, why
	if v.state == granted {
		v.state = ended
	}
	rd.changed()
}

// loses reports whether the hold has no majority any more, for the first time: then it returns whom to tell, and has
// the other nodes freed. The caller holds c.mu.
func (c *claim) loses(rd *round) (tell func(driver.LostReason, error)) {
	if !c.held || c.rd != rd || c.told || c.ending != nil || rd.count(granted) >= c.d.quorum {
		return nil
	}
	c.told = true
	c.end(&driver.Release{Key: c.r.Key, ID: c.r.ID})
	if c.loss == nil {
		return func(driver.LostReason, error) {}
	}
	return c.loss
}

// count returns how many votes are in a state. The caller holds claim.mu.
func (rd *round) count(s voteState) (n int) {
	for i := range rd.votes {
		if rd.votes[i].state == s {
			n++
		}
	}
	return n
}

// stop ends what is still under way. The caller holds claim.mu.
func (rd *round) stop() {
	for i := range rd.votes {
		rd.votes[i].cancel()
	}
}
