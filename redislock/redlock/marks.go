// The mark of a node: which run of its server it belongs to, and of which set of nodes the server is one. guard.go asks
// for it; sets.go says what all marks together mean.

package redlock

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/interlock-go/interlock/redislock"
)

// A set of nodes is the list of its nodes' IDs, and the list stands in the mark of each. An ID is made from the run ID
// that the server had when it was marked first, so it is the same for every client, under whatever address it reaches
// the server. While a set is being changed a mark has two lists. The names beside the IDs are those that the first
// client used. They decide nothing about a server that has its mark; of one that has lost it they say whose place it
// has.

// markKey is the key of the mark, behind the prefix.
const markKey = "redlock"

// readMark reads a mark, and sets the run in it if the node has its data still: it has run for the longest lease, or
// has written an append-only file. Before a mark had fields it was a string, the run ID alone.
var readMark = redislock.NewScript(`
local server = redis.call('INFO', 'server')
local run = string.match(server, 'run_id:(%w+)')
local ran = tonumber(string.match(server, 'uptime_in_seconds:(%d+)'))
local mark = redis.pcall('HMGET', KEYS[1], 'run', 'id', 'set', 'next')
if mark.err then
	mark = {redis.call('GET', KEYS[1])}
end
local was, state = mark[1], 'ok'
if not was then
	state = ran >= tonumber(ARGV[1]) and 'rested' or 'blank'
elseif was ~= run then
	if ran < tonumber(ARGV[1]) and not string.find(redis.call('INFO', 'persistence'), 'aof_enabled:1', 1, true) then
		state = 'old'
	elseif mark[2] then
		-- A server without memory refuses; then the next who asks sees the same.
		redis.pcall('HSET', KEYS[1], 'run', run)
	end
end
local function word(value)
	return value and value ~= '' and value or '-'
end
return table.concat({state, ARGV[1] - ran, run, word(mark[2]), word(mark[3]), word(mark[4])}, ' ')
`)

// writeMark writes a mark if the node is as it was read: the same run, and the same lists. So of several clients that
// have judged at once the first counts.
var writeMark = redislock.NewScript(`
local run = string.match(redis.call('INFO', 'server'), 'run_id:(%w+)')
local mark = redis.pcall('HMGET', KEYS[1], 'set', 'next')
local before = mark.err
if before then
	mark = {}
end
if run ~= ARGV[1] or (mark[1] or '') ~= ARGV[2] or (mark[2] or '') ~= ARGV[3] then
	return 'changed'
end
if before then
	redis.call('SET', KEYS[1], run) -- fails without memory, while the mark is still there
	redis.call('DEL', KEYS[1])
end
redis.call('HSET', KEYS[1], 'run', run, 'id', ARGV[4], 'set', ARGV[5], 'next', ARGV[6])
return 'ok'
`)

// idLength is how much of a run ID is an ID.
const idLength = 16

// The states of a mark: how much the node remembers.
const (
	stateOK     = "ok"     // all it has granted
	stateRested = "rested" // it has no mark, but has run for longer than anything that it may have forgotten
	stateBlank  = "blank"  // it has no mark
	stateOld    = "old"    // its mark is of an earlier run
)

// seat is one node of a set.
type seat struct {
	id   string
	name string // under which the client that made the set knew it
}

// set is a list of nodes. A nil one is none.
type set struct {
	turn  int    // 1 for the first set of these nodes, one more after each change
	seats []seat // in the order of their IDs
}

// newSet makes a set of seats, which it keeps.
func newSet(turn int, seats []seat) *set {
	slices.SortFunc(seats, func(a, b seat) int { return strings.Compare(a.id, b.id) })
	return &set{turn, seats}
}

// same reports whether both have the same nodes.
func (l *set) same(o *set) bool {
	return l != nil && o != nil && slices.EqualFunc(l.seats, o.seats, func(a, b seat) bool { return a.id == b.id })
}

func (l *set) has(id string) bool {
	return slices.ContainsFunc(l.seats, func(s seat) bool { return s.id == id })
}

// names returns how the first client called the nodes.
func (l *set) names() []string {
	all := make([]string, 0, len(l.seats))
	for _, s := range l.seats {
		all = append(all, s.name)
	}
	slices.Sort(all)
	return all
}

// text is a set as it stands in a mark, a word without spaces. A name may be anything.
func (l *set) text() string {
	if l == nil {
		return ""
	}
	all := make([]string, 0, len(l.seats))
	for _, s := range l.seats {
		all = append(all, s.id+"@"+url.QueryEscape(s.name))
	}
	return strconv.Itoa(l.turn) + ":" + strings.Join(all, ",")
}

// parseSet reads what text has written, or "-" for none.
func parseSet(text string) (*set, error) {
	if text == "-" {
		return nil, nil //nolint:nilnil // none, as the type says
	}
	bad := fmt.Errorf("the set %q in the mark of a node cannot be read", text)
	number, list, _ := strings.Cut(text, ":")
	turn, err := strconv.Atoi(number)
	if err != nil {
		return nil, bad
	}
	var seats []seat
	for part := range strings.SplitSeq(list, ",") {
		id, escaped, ok := strings.Cut(part, "@")
		name, err := url.QueryUnescape(escaped)
		if !ok || id == "" || err != nil {
			return nil, bad
		}
		seats = append(seats, seat{id, name})
	}
	return newSet(turn, seats), nil
}

// mark is what a node has said of itself.
type mark struct {
	state     string
	rest      time.Duration // how long it rests, if it must
	run, id   string
	set, next *set // its set, and the one that it is being changed to; both may be nil
}

// parseMark reads the answer of readMark.
func parseMark(text string) (*mark, error) {
	words := strings.Split(text, " ")
	if len(words) != 6 {
		return nil, fmt.Errorf("the answer %q about the mark of a node cannot be read", text)
	}
	seconds, err := strconv.Atoi(words[1])
	if err != nil || len(words[2]) < idLength {
		return nil, fmt.Errorf("the answer %q about the mark of a node cannot be read", text)
	}
	m := &mark{state: words[0], rest: time.Duration(seconds) * time.Second, run: words[2], id: words[3]}
	if m.id == "-" {
		m.id = m.run[:idLength]
	}
	var badSet, badNext error
	m.set, badSet = parseSet(words[4])
	m.next, badNext = parseSet(words[5])
	return m, errors.Join(badSet, badNext)
}

// sets returns the sets that the node belongs to.
func (m *mark) sets() (all []*set) {
	for _, l := range []*set{m.set, m.next} {
		if l != nil {
			all = append(all, l)
		}
	}
	return all
}

// in reports whether the node belongs to that set.
func (m *mark) in(l *set) bool { return l.same(m.set) || l.same(m.next) }

// resting reports whether the node may have forgotten what it has granted.
func (m *mark) resting() bool { return m.state == stateBlank || m.state == stateOld }

// read asks a node for its mark. link is the connection that the answer came over.
func (g *guard) read(ctx context.Context) (m *mark, link redislock.Link, err error) {
	// The server counts whole seconds, so the lease is rounded up, and one is added for what the server has rounded
	// down.
	need := int64((g.opts.LongestLease+time.Second-1)/time.Second) + 1
	r := g.callMark(ctx, readMark, strconv.FormatInt(need, 10))
	if r.Err != nil {
		return nil, 0, r.Err
	}
	if r.Link == 0 {
		return nil, 0, errNoLink
	}
	m, err = parseMark(r.Text)
	return m, r.Link, err
}

// write replaces the mark that was read, unless the node has changed since.
func (g *guard) write(ctx context.Context, was *mark, w *writing) error {
	return g.callMark(ctx, writeMark,
		was.run, was.set.text(), was.next.text(), w.id, w.set.text(), w.next.text()).Err
}

// callMark runs a script on the key of the mark.
func (g *guard) callMark(ctx context.Context, s *redislock.Script, args ...string) redislock.Reply {
	key := g.opts.Prefix + markKey
	return g.Conn.Call(ctx, &redislock.Call{Script: s, Slot: redislock.SlotOf(key), Keys: []string{key}, Args: args})
}
