// The mark of a node, and the Conn that keeps the votes of an unmarked node from counting. node.go puts it between
// redislock and the server; opening.go marks new nodes.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/redislock"
)

// A node that was restarted without its data must not vote as long as a hold may live that it has forgotten: with its
// vote a second owner could get a majority. So each node carries a mark with the run ID of the server. One whose mark
// is of this run has its data. So has one with an older mark if it writes an append-only file; without that, the mark
// is from a snapshot, and what was granted after it is forgotten. Any other votes when it has run for the longest
// lease, and gets the mark then. Only if all nodes are there, and none has a mark, they are new, and get it at once. A
// majority that has none would not do: it may be nodes that have all come back empty, while the others, which are away,
// know of a hold. Nor does a mark of an earlier run, on any of them, go with new nodes: the others have had theirs, and
// what they granted. The mark also names the set of nodes: see sets.go.
//
// The question is asked once for each connection, since a connection does not outlive its server; a grant over a
// connection for which it was not answered does not count.

// askAgain bounds how long a resting node is not asked again: another client may be giving it the mark.
const askAgain = time.Second

// errRests matches the error of a node that must not vote yet.
var errRests = errors.New("the node has come back without its data, or with a snapshot of it, " +
	"and does not vote until the longest lease has passed")

// mostWrites is how often a mark is written in a row: other clients may be writing it too.
const mostWrites = 3

// abstains reports whether an error says that a node does not vote, though it can be asked.
func abstains(err error) bool {
	var other *setError
	return errors.Is(err, errRests) || errors.Is(err, errIncomplete) || errors.As(err, &other)
}

// errNoLink says that a server does not tell over which connection it answers. A restart between a vote and the
// question about the mark would go unnoticed then.
var errNoLink = errors.New("replies and pushes come over different connections, so a restart between them could not " +
	"be told: redlock needs RESP3 (Redis 6 or later, and not turned off in the client)")

// guard is a Conn that lets no grant through to which its node has no right.
type guard struct {
	redislock.Conn
	opts *Options
	sets *sets
	node int // its index

	mu    sync.Mutex              // guards what follows
	fit   map[redislock.Link]bool // connections to a node that may vote; those that are not in it are not known
	drops int                     // how many connections have broken; after each the node may be another
	asked int                     // of them, those that had when the last answer was asked for
	why   error                   // why the node does not vote; nil if it does
	again time.Time               // it is not asked before for why it does not
	old   bool                    // it rests with the mark of an earlier run
	heard time.Time               // when the node answered last
}

var _ redislock.Conn = (*guard)(nil)

// newGuard returns a guard over conn, whose methods it inherits. sets judges the mark of the node with that index.
func newGuard(conn redislock.Conn, opts *Options, sets *sets, node int) *guard {
	return &guard{Conn: conn, opts: opts, sets: sets, node: node, fit: make(map[redislock.Link]bool)}
}

// awaitingGuard is a guard over a Conn whose waiting goroutines read for it: without that, a push is read a tick later.
type awaitingGuard struct {
	*guard
	awaiter redislock.Awaiter
}

// Await passes on to the Conn.
func (g awaitingGuard) Await(ctx context.Context, slot uint16, news <-chan struct{}, until time.Time) (bool, error) {
	return g.awaiter.Await(ctx, slot, news, until)
}

// conn returns g as redislock must see it: with Await only if the Conn has it, because redislock asks for that method.
func (g *guard) conn() redislock.Conn {
	if a, awaits := g.Conn.(redislock.Awaiter); awaits {
		return awaitingGuard{g, a}
	}
	return g
}

// Start puts the guard in front of the handler, so that it sees pushes first.
func (g *guard) Start(ctx context.Context, channel string, h redislock.Handler) error {
	return g.Conn.Start(ctx, channel, &guardedListener{g, h})
}

// Call runs a script. A grant counts only if its connection is known to lead to a node that may vote. The question
// comes after the answer and only for grants, so it costs a round trip once for each connection.
func (g *guard) Call(ctx context.Context, c *redislock.Call) redislock.Reply {
	r := g.Conn.Call(ctx, c)
	if r.Err == nil {
		g.noteSign()
	}
	if r.Err != nil || !grants(r.Text) || g.isFit(r.Link) {
		return r
	}
	// look stores the link of its own answer. If that is another one, the connection broke in between.
	if err := g.look(ctx); err != nil {
		r.Err = err
	} else if !g.isFit(r.Link) {
		r.Err = errors.New("the connection broke between the answer and the question whether the node may vote")
	}
	return r
}

// grants reports whether a script's answer, or a push, is a grant.
func grants(text string) bool { return strings.HasPrefix(text, "G ") }

// look asks the node whether it may vote, and writes its mark if it may but has none, or another. It costs a round
// trip, and two more if it writes. It returns an error that abstains recognizes if the node does not vote.
func (g *guard) look(ctx context.Context) error {
	for writes := 0; ; writes++ {
		g.mu.Lock()
		drops := g.drops
		g.mu.Unlock()
		m, link, err := g.read(ctx)
		if err != nil {
			return err
		}
		w, err := g.sets.judge(g.node, m)
		if w == nil || err != nil || writes == mostWrites {
			if err == nil && w != nil {
				err = errIncomplete // others change it all the time
			}
			return g.judged(ctx, m, link, drops, err)
		}
		if err := g.write(ctx, m, w); err != nil {
			return err
		}
	}
}

// judged records what a look has found. drops is what it was before the question: a connection that broke since then
// may have led to another run of the server.
func (g *guard) judged(ctx context.Context, m *mark, link redislock.Link, drops int, err error) error {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.asked = max(g.asked, drops)
	if err == nil {
		g.fit[link] = true
		g.why, g.old = nil, false
		return nil
	}
	wait := askAgain
	if errors.Is(err, errRests) {
		wait = min(wait, m.rest)
		err = fmt.Errorf("%w: for another %v", err, m.rest)
	}
	var other *setError
	if errors.As(err, &other) && (g.why == nil || g.why.Error() != err.Error()) {
		g.opts.Logger.WarnContext(ctx, "redlock: a node does not vote for this client", "node", g.sets.names[g.node],
			"error", err)
	}
	clear(g.fit)
	g.why, g.again, g.old = err, time.Now().Add(wait), m.state == stateOld
	return err
}

// mayVote returns nil if the node voted when it was asked last. Otherwise it asks again, unless it has done so a moment
// ago: a vote that does not count would have to be undone.
func (g *guard) mayVote(ctx context.Context) error {
	g.mu.Lock()
	why, again := g.why, g.again
	g.mu.Unlock()
	if why == nil || time.Now().Before(again) {
		return why
	}
	return g.look(ctx)
}

// mayRenew returns an error if the node is of another set: a majority of a set that was changed may be none of the
// current one. Whether it has the hold it says itself, so it may rest.
func (g *guard) mayRenew(ctx context.Context) error {
	g.mu.Lock()
	why, changed := g.why, g.drops != g.asked
	g.mu.Unlock()
	if changed {
		why = g.look(ctx)
	}
	var other *setError
	if errors.As(why, &other) {
		return why
	}
	return nil
}

// standing reports whether the node had the mark of an earlier run when it was asked last, and why it did not vote.
func (g *guard) standing() (old bool, why error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.old, g.why
}

// noteSign records that the node has answered.
func (g *guard) noteSign() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.heard = time.Now()
}

// silence is how long the node has not answered.
func (g *guard) silence() time.Duration {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Since(g.heard)
}

// isFit reports whether l is known to lead to a node that may vote.
func (g *guard) isFit(l redislock.Link) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.fit[l]
}

// guardedListener keeps pushed grants from a driver if their connection is not known to lead to a node that may vote.
// The waiter's next heartbeat asks then, and Call finds out.
type guardedListener struct {
	g *guard
	redislock.Handler
}

// Pushed passes on a message, unless it is a grant without a right to it. It must not block, so it cannot ask the node.
func (e *guardedListener) Pushed(l redislock.Link, channel, message string) {
	if !grants(message) || e.g.isFit(l) {
		e.Handler.Pushed(l, channel, message)
	}
}

// Dropped forgets a connection: the next one may lead to a restarted server.
func (e *guardedListener) Dropped(l redislock.Link) {
	e.g.mu.Lock()
	delete(e.g.fit, l)
	e.g.drops++
	e.g.mu.Unlock()
	e.Handler.Dropped(l)
}
