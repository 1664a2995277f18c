// The names of nodes; wire.md has all of them. acquire.go and inspect.go use them.
//
// The encoding is part of the format: two clients that wrote a name differently would each have the lock. So every name
// of a lock has a node, no two names share one, and a node that encode would not write is nobody's lock.

package zklock

import (
	"cmp"
	"encoding/json"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock/driver"
)

// Small letters are not accepted: %2f and %2F would be two nodes for one name.
const upperHex = "0123456789ABCDEF"

// encode makes one component of a path of a lock's name. ASCII letters and digits, "-", "_" and "." stay. Every other
// byte is written as %XX, and so is a dot in front, because "." and ".." are no names. No two names meet. What stays is
// fixed for ever and does not depend on tables of Unicode, which grow: two programs must always write the same.
func encode(name string) string {
	// Most names need no escape, and cost no allocation then.
	clean := true
	for i := range len(name) {
		clean = clean && stays(name, i)
	}
	if clean {
		return name
	}
	var b strings.Builder
	b.Grow(3 * len(name))
	for i := range len(name) {
		c := name[i]
		if stays(name, i) {
			b.WriteByte(c)
		} else {
			b.Write([]byte{'%', upperHex[c>>4], upperHex[c&15]})
		}
	}
	return b.String()
}

// stays reports whether the byte at i is written as it is.
func stays(name string, i int) bool {
	c := name[i]
	switch {
	case c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c >= '0' && c <= '9', c == '-', c == '_':
		return true
	case c == '.':
		return i > 0
	}
	return false
}

// decode is the reverse of encode. It reports false for what encode never writes: such a node is not one of our locks.
func decode(component string) (name string, ok bool) {
	var b strings.Builder
	for i := 0; i < len(component); i++ {
		c := component[i]
		if c != '%' {
			b.WriteByte(c)
			continue
		}
		if i+2 >= len(component) {
			return "", false
		}
		high, low := strings.IndexByte(upperHex, component[i+1]), strings.IndexByte(upperHex, component[i+2])
		if high < 0 || low < 0 {
			return "", false
		}
		b.WriteByte(byte(high<<4 | low))
		i += 2
	}
	name = b.String()
	return name, name != "" && encode(name) == component // another spelling of the same name is not ours
}

// tree says where the nodes are: below the root one node for each kind and one for the sessions.
type tree struct{ root string } // "" or "/a/b", without a slash at its end

func (t tree) kind(k driver.Kind) string { return t.root + "/" + string(k) }

// lock is the path of a lock's node. The kind is a part of it, so locks of two kinds never meet, whatever their names.
func (t tree) lock(key driver.Key) string { return t.kind(key.Kind) + "/" + encode(key.Name) }

// It has a name that no kind has, beside the kinds and not below one, so a list of locks never shows it.
func (t tree) sessions() string { return t.root + "/sessions" }

// Places in a queue: names, order, who blocks whom, and what operators see. wire.md has the format; queue.go and
// inspect.go read with it.
//
// Who has a lock follows from the names of the nodes alone, so one list of children is enough to decide. The data of a
// node is for operators, with one exception that decides nothing about who is inside: a try asks again sooner if the
// holder Retains.

// passes is how many tokens belong to one node: token = 64 x czxid, and the next 63 are for passes inside the process.
// The czxid of a later node is larger, so the blocks never meet.
const passes = 64

// lastZxid is the last transaction whose tokens are all below 2^63.
const lastZxid = math.MaxInt64/passes - 1

// queuePlace is a node in a lock's queue, as its name tells it.
type queuePlace struct {
	name string
	mode driver.Mode
	seq  int32 // the number that the server has appended: its order in the queue

	retained bool // its client keeps the lock, and no owner has it
}

// modes are the first letters of nodes, in the order of driver.Mode.
const modes = "wru"

// letter returns the first letter of a node of that mode.
func letter(m driver.Mode) string { return modes[m : m+1] }

// parseQueuePlace reads a node's name, such as w3kq7f-0000000042. It reports false for nodes that are not ours. The
// number is read as 32 bits with a sign, as the servers count: after 2^31 - 1 they go on with negative ones, which give
// way; see drain.
func parseQueuePlace(name string) (queuePlace, bool) {
	head, tail, ok := strings.Cut(name, "-")
	if !ok || len(head) < 2 {
		return queuePlace{}, false
	}
	mode := strings.IndexByte(modes, head[0])
	seq, err := strconv.ParseInt(tail, 10, 32)
	if mode < 0 || err != nil {
		return queuePlace{}, false
	}
	return queuePlace{name: name, mode: driver.Mode(mode), seq: int32(seq)}, true
}

// inOrder returns the places of a lock, the first to come first. Marks of retained holds are not places; they are
// recorded in theirs.
func inOrder(children []string) []queuePlace {
	all := make([]queuePlace, 0, len(children))
	var marks []string
	for _, name := range children {
		if p, ours := parseQueuePlace(name); ours {
			all = append(all, p)
		} else if request, is := strings.CutPrefix(name, idle); is {
			marks = append(marks, request)
		}
	}
	// Marks and places may come in any order, so marks are put to their places at the end.
	for i := range all {
		all[i].retained = slices.Contains(marks, all[i].name)
	}
	// Compared and not subtracted: the difference of a negative number and a large one has no room in an int of 32
	// bits.
	slices.SortFunc(all, func(a, b queuePlace) int { return cmp.Compare(a.seq, b.seq) })
	return all
}

// blocks reports whether p, which came before, is in the way of a request of that mode: a writer is in everybody's way
// and everybody in a writer's, and upgradeable readers are in each other's. That rule is the same for every client, and
// for every version: one that judged otherwise would be inside beside another.
func (p queuePlace) blocks(m driver.Mode) bool {
	return p.mode == driver.Exclusive || m == driver.Exclusive || p.mode == driver.Upgradeable &&
		m == driver.Upgradeable
}

// blocker returns the index of the nearest place in the way of the one at index i, or -1. Only that one is watched, so
// that a release wakes one waiter.
func blocker(all []queuePlace, i int) int {
	for j := i - 1; j >= 0; j-- {
		if all[j].blocks(all[i].mode) {
			return j
		}
	}
	return -1
}

// note is what operators see of a request. It is the data of its node.
type note struct {
	Client string `json:"client,omitempty"`
	Owner  string `json:"owner,omitempty"`
	Label  string `json:"label,omitempty"`
	Tokens int    `json:"tokens"` // how many tokens it would be granted

	Retains bool `json:"retains,omitempty"` // see driver.Request
}

// noteOf returns the note of a request, in JSON.
func noteOf(r *driver.Request) []byte {
	data, err := json.Marshal(note{
		Client: r.Client, Owner: r.Owner, Label: r.Label, Tokens: tokensFor(r), Retains: r.Retains,
	})
	if err != nil { // there is nothing in it that could not be written
		return nil
	}
	return data
}

// tokensFor is how many tokens a request gets: what it asks for, within those of one node.
func tokensFor(r *driver.Request) int { return min(max(r.Tokens, 1), passes) }

// parseNote reads what another client has written. What cannot be read is left out: it is only for people. Refusing it
// would let anybody's write stop the queue.
func parseNote(data []byte) note {
	n := note{Tokens: 1}
	_ = json.Unmarshal(data, &n) // what cannot be read is not shown
	return n
}

// seen is a node as it was read.
type seen struct {
	queuePlace
	note
	stat *zk.Stat
}

// token is the first token of its block.
func (s *seen) token() uint64 { return uint64(s.stat.Czxid) * passes }

// since is when the servers made the node, by their clock. It is shown, and never compared with a clock of ours.
func (s *seen) since() time.Time { return time.UnixMilli(s.stat.Ctime) }

// holder describes the place of a holder for operators. Its token is the first of the block, since the servers do not
// know of passes inside the process.
func (s *seen) holder() driver.Holder {
	h := driver.Holder{
		Client: s.Client, Token: s.token(), Weight: 1, Shared: s.mode != driver.Exclusive, Since: s.since(),
		Retained: s.retained,
	}
	if !s.retained { // a retained hold has no owner
		h.Owner, h.Label = s.Owner, s.Label
	}
	return h
}

// waiter describes the place of a waiter; the first waiter has position 1.
func (s *seen) waiter(position int) driver.Waiter {
	return driver.Waiter{
		Owner: s.Owner, Client: s.Client, Label: s.Label, Weight: 1,
		Shared: s.mode != driver.Exclusive, Since: s.since(), Position: position,
	}
}

// heldBy is the error for a request that finds s in the way. s is nil if it could not be read any more. The error is
// then without an owner, and as true.
func heldBy(key driver.Key, s *seen) *driver.HeldError {
	held := &driver.HeldError{Kind: key.Kind, Name: key.Name}
	if s != nil {
		held.Client, held.Token, held.Since, held.Retains = s.Client, s.token(), s.since(), s.Retains
		if !s.retained {
			held.Owner = s.Owner
		}
	}
	return held
}
