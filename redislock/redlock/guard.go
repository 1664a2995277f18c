// The mark of a node, and the Conn that keeps the votes of an unmarked node from counting. node.go puts it between
// redislock and the server; opening.go marks new nodes.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/redislock"
)

// A node that was restarted without its data must not vote as long as a hold may live that it has forgotten: with its
// vote a second owner could get a majority. So each node carries a mark: the run ID of the server. One whose mark is
// that of this run has its data. So has one with an older mark if it writes an append-only file; without that, the mark
// is from a snapshot, and what was granted after it is forgotten. Any other votes when it has run for the longest
// lease, and gets the mark then. Only when a driver is opened, and all nodes are there, and none has a mark, they are
// new, and get it at once. A majority that has none would not do: it may be nodes that have all come back empty, while
// the others, which are away, know of a hold. Nor does a mark of an earlier run, on any of them, go with new nodes: the
// others have had theirs, and what they granted.
//
// The question is asked once for each connection, since a connection does not outlive its server; a grant over a
// connection for which it was not answered does not count.

// guardScript looks for the mark, and sets it if the node may have it. It is atomic, so two clients cannot judge
// differently.
var guardScript = redislock.NewScript(`
local mark, server = redis.call('GET', KEYS[1]), redis.call('INFO', 'server')
local run = string.match(server, 'run_id:(%w+)')
if mark == run then
	return 'ok'
end
local ran = tonumber(string.match(server, 'uptime_in_seconds:(%d+)'))
if not mark and (ARGV[2] == 'new' or ran >= tonumber(ARGV[1])) then
	redis.call('SET', KEYS[1], run)
	return 'ok'
end
if mark and (ran >= tonumber(ARGV[1]) or string.find(redis.call('INFO', 'persistence'), 'aof_enabled:1', 1, true)) then
	redis.pcall('SET', KEYS[1], run) -- a server without memory refuses; then the next who asks sees the same
	return 'ok'
end
return (mark and 'old ' or 'rest ') .. ARGV[1] - ran
`)

// mark is the key of the mark, behind the prefix.
const mark = "redlock"

// askAgain bounds how long a resting node is not asked again: another client may be giving it the mark.
const askAgain = time.Second

// errRests matches the error of a node that must not vote yet.
var errRests = errors.New("the node has come back without its data, or with a snapshot of it, " +
	"and does not vote until the longest lease has passed")

// errNoLink says that a server does not tell over which connection it answers. A restart between a vote and the
// question about the mark would go unnoticed then.
var errNoLink = errors.New("replies and pushes come over different connections, so a restart between them could not " +
	"be told: redlock needs RESP3 (Redis 6 or later, and not turned off in the client)")

// guard is a Conn that lets no grant through to which its node has no right.
type guard struct {
	redislock.Conn
	opts *Options

	mu        sync.Mutex              // guards what follows
	fit       map[redislock.Link]bool // connections to a node that may vote; those that are not in it are not known
	restUntil time.Time               // the node is not asked again before
	restFor   time.Duration           // how long it said that it must rest
	old       bool                    // it rests with the mark of an earlier run
	heard     time.Time               // when the node answered last
}

var _ redislock.Conn = (*guard)(nil)

// newGuard returns a guard over conn, whose methods it inherits.
func newGuard(conn redislock.Conn, opts *Options) *guard {
	return &guard{Conn: conn, opts: opts, fit: make(map[redislock.Link]bool)}
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
	if err := g.look(ctx, false); err != nil {
		r.Err = err
	} else if !g.isFit(r.Link) {
		r.Err = errors.New("the connection broke between the answer and the question whether the node may vote")
	}
	return r
}

// grants reports whether a script's answer, or a push, is a grant.
func grants(text string) bool { return strings.HasPrefix(text, "G ") }

// look asks the node whether it may vote. allNew says that all nodes were found without a mark. It returns an error
// that matches errRests if the node must rest.
func (g *guard) look(ctx context.Context, allNew bool) error {
	// The server counts whole seconds, so the lease is rounded up, and one is added for what the server has rounded
	// down.
	need := int64((g.opts.LongestLease+time.Second-1)/time.Second) + 1
	args := []string{strconv.FormatInt(need, 10), ""}
	if allNew {
		args[1] = "new"
	}
	key := g.opts.Prefix + mark
	r := g.Conn.Call(ctx,
		&redislock.Call{Script: guardScript, Slot: redislock.SlotOf(key), Keys: []string{key}, Args: args})
	if r.Err != nil {
		return r.Err
	}
	if r.Link == 0 {
		return errNoLink
	}
	word, rest, _ := strings.Cut(r.Text, " ")
	g.mu.Lock()
	defer g.mu.Unlock()
	if word == "ok" {
		g.fit[r.Link] = true
		g.restUntil, g.old = time.Time{}, false
		return nil
	}
	seconds, err := strconv.Atoi(rest)
	if err != nil {
		return fmt.Errorf("the answer %q whether the node may vote cannot be read", r.Text)
	}
	g.old = word == "old"
	g.restFor = time.Duration(seconds) * time.Second
	g.restUntil = time.Now().Add(min(g.restFor, askAgain))
	return g.resting()
}

// resting is the error of a node that rests.
func (g *guard) resting() error { return fmt.Errorf("%w: for another %v", errRests, g.restFor) }

// rests returns an error if the node was found resting a moment ago, and spares it the question.
func (g *guard) rests() error {
	g.mu.Lock()
	defer g.mu.Unlock()
	if time.Now().Before(g.restUntil) {
		return g.resting()
	}
	return nil
}

// standing reports whether the node had to rest when it was asked last, and whether it had the mark of an earlier run.
func (g *guard) standing() (rested, old bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return !g.restUntil.IsZero(), g.old
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
	e.g.mu.Unlock()
	e.Handler.Dropped(l)
}
