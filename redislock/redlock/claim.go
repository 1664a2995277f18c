// The claim of a request and its rounds: what was asked of which node, and what came back. acquire.go begins them,
// release.go ends them; the votes are judged in judge.go.

package redlock

import (
	"context"
	"strconv"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// requestKey names a request. The same ID on two locks is two requests.
type requestKey struct {
	driver.Key
	id string
}

// claim is one request: while it is being acquired, while it is held, and until its release has reached every node.
type claim struct {
	d *Driver
	r driver.Request // as it was first asked, without Waiting and Lost of later copies; constant

	mu     sync.Mutex                     // guards what follows, and the votes of its rounds
	busy   bool                           // an Acquire is under way
	waits  func(*driver.HeldError)        // Request.Waiting of the latest Acquire
	loss   func(driver.LostReason, error) // its Request.Lost
	rounds int                            // how many rounds were begun
	rd     *round                         // the latest; nil before the first
	held   bool                           // it was granted, and the caller has been told
	told   bool                           // the holder was told that it was lost
	answer driver.Grant                   // the grant, once held
	lease  time.Duration                  // the longest time for which a node may keep it without hearing of it again
	ending *ending                        // its release, once begun
}

// voteState is what a node has said to a round.
type voteState uint8

const (
	asked   voteState = iota // no answer yet
	queued                   // behind another request; the node will push its vote
	granted                  // it has voted for us
	refused                  // to a try: another request is in the way
	failed                   // no answer; it may have voted for us all the same
	ended                    // it knows that the request, or the hold, is over
	yielded                  // we have given the vote back
	absent                   // it was not asked, so nothing can be left there
)

// vote is what a round knows of one node. claim.mu guards it.
type vote struct {
	state  voteState          // what the node has said last
	grant  driver.Grant       // its grant, if granted: the node's own tokens, and its own lease
	held   *driver.HeldError  // who is in the way at that node
	err    error              // why it failed or ended
	broken bool               // the node said that the hold had been ended from outside
	before bool               // an earlier question of this round to it has an unknown outcome
	cancel context.CancelFunc // ends the question that is under way
	done   chan struct{}      // closed when the node's answer has been recorded, or its undo has ended
}

// round is one attempt at a majority. It shows the same ID to each node, so that a repetition finds its own votes and a
// release names them all. No other round of any client ever shows that ID.
type round struct {
	c     *claim
	id    string
	began time.Time     // our clock, before the first question
	news  chan struct{} // buffer of one: a vote has changed

	// claim.mu guards what follows.
	votes    []vote           // by the index of the node
	enough   time.Time        // since when there is a majority; zero if there is none
	settled  time.Time        // since when it is certain that there will be none; zero if it is not
	patience time.Duration    // the unit of time for which it keeps votes that are no majority
	yieldAt  time.Time        // when it gives such votes back; zero if it has none
	voted    int              // the number of votes for which yieldAt was set
	timed    bool             // a majority has answered, and Driver.trip knows how long it took
	told     driver.HeldError // who is in the way, as the caller was told last
	waits    bool             // the caller was told that the request waits
	waiting  func(*driver.HeldError)
}

// begin starts the next round, and asks all nodes at once. The first round has the request's own ID and later ones a
// suffix: votes of an earlier round that a node still has must not count for this one. The caller holds c.mu.
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

// copied returns a round that asks for the same as the claim's latest round. Each question waits for the end of the
// earlier one to that node, so that their answers keep their order. The caller holds c.mu.
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

// ask asks one node for its vote, in a goroutine of its own, after the earlier question, if after is set, has ended. It
// is not the caller's context that bounds the question: a waiting caller may leave and come back (resume). The caller
// holds claim.mu.
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
			case <-ctx.Done(): // the node is asked all the same, and says that ctx has ended
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

// request returns what a node is asked: the claim's request under the round's ID. The caller holds claim.mu.
func (rd *round) request(i int, try bool) *driver.Request {
	r := rd.c.r
	r.ID, r.Owner, r.Try = rd.id, joinRoundOwner(rd.id, r.Owner), try
	r.Waiting = func(held *driver.HeldError) { rd.queued(i, held) }
	r.Lost = func(reason driver.LostReason, cause error) { rd.lost(i, reason, cause) }
	return &r
}

// changed makes the goroutine that runs the round look again. The caller holds claim.mu.
func (rd *round) changed() {
	select {
	case rd.news <- struct{}{}:
	default: // it will look anyway
	}
}

// queued records that a node has put the request into its queue. It runs in a goroutine of that node's driver.
func (rd *round) queued(i int, held *driver.HeldError) {
	rd.c.mu.Lock()
	defer rd.c.mu.Unlock()
	if v := &rd.votes[i]; v.state == asked || v.state == queued {
		v.state, v.held = queued, held
		rd.changed()
	}
}

// answered records how a node's part of the round has ended.
func (rd *round) answered(i int, g driver.Grant, err error) {
	rd.c.mu.Lock()
	defer rd.c.mu.Unlock()
	v := &rd.votes[i]
	// Only a first question that was not sent leaves nothing on the node.
	untouched := v.state == asked && !v.before && unsent(err)
	v.grant = g
	if err != nil || !v.broken { // else why it ended is known already
		v.err = err
	}
	v.state, v.held = stateOf(err)
	if untouched {
		v.state = absent
	}
	if v.broken && err == nil { // the grant came after the word that the hold is over
		v.state = ended
	}
	rd.changed()
}

// lost records that a node has ended the hold by itself; the rest may be no majority. The node tells the round that
// asked it first. If a later round goes on with the same ID (see copied), that round's votes are the ones that count.
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
	if tell != nil { // outside of the mutex: it is the caller's code
		tell(reason, cause)
	}
}

// breaks takes a vote away, also one that is not answered yet. The caller holds claim.mu.
func (rd *round) breaks(i int, why error) {
	v := &rd.votes[i]
	v.broken, v.err = true, why
	if v.state == granted {
		v.state = ended
	}
	rd.changed()
}

// loses decides whether the hold has no majority any more. The first time it returns the listener to tell, and has the
// other nodes freed: their votes would keep everybody out until the lease ends. The caller holds c.mu.
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

// stop ends the questions that are under way. The caller holds claim.mu.
func (rd *round) stop() {
	for i := range rd.votes {
		rd.votes[i].cancel()
	}
}
