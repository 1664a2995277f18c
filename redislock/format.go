// What is stored beside the scripts' own fields (wire.md). First the keys and channels of a lock: the operations ask
// here for every key that a script gets; keys that scripts make themselves follow the same rules.

package redislock

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
)

// names makes the keys and channels of a prefix. A lock's own key carries its name, so a tag in braces in the name
// decides its slot as for any other key of the user's. The lock's other keys (the floor of tokens, the tombstones of
// requests) get into the same slot by a tag of ours.
type names struct{ prefix string }

// lock returns the key of a lock and its slot.
func (n names) lock(key driver.Key) (name string, slot uint16) {
	name = string(n.appendLock(nil, key))
	return name, conn.SlotOf(name)
}

// lockOf is the reverse of lock. It reports false for a key that is no lock: another program's, or one of our other
// keys.
func (n names) lockOf(name string) (key driver.Key, is bool) {
	rest, ours := strings.CutPrefix(name, n.prefix)
	kind, lock, cut := strings.Cut(rest, ":")
	return driver.Key{Kind: driver.Kind(kind), Name: lock}, ours && cut && slices.Contains(kinds, driver.Kind(kind))
}

// floor returns the key of the largest token that was minted in a slot. All locks of the slot share it, so that a lock
// that is free needs no key of its own.
func (n names) floor(slot uint16) string { return string(n.appendFloor(nil, slot)) }

// tomb returns the key of the tombstone that refuses the request with that ID.
func (n names) tomb(slot uint16, id string) string { return string(n.appendTomb(nil, slot, id)) }

// request returns the keys that the script of one request needs: those of the lock, of the slot's floor, and of the
// tombstone of that ID. They are cut from one string, because each acquisition and each release needs a set of them,
// which is one allocation then.
func (n names) request(key driver.Key, id string) (keys [3]string, slot uint16) {
	b := n.appendLock(make([]byte, 0, 256), key)
	first := len(b)
	slot = conn.SlotOf(string(b))
	b = n.appendFloor(b, slot)
	second := len(b)
	all := string(n.appendTomb(b, slot, id))
	return [3]string{all[:first], all[first:second], all[second:]}, slot
}

// appendLock, appendFloor and appendTomb append one key each, for callers that cut several keys from one buffer.
func (n names) appendLock(b []byte, key driver.Key) []byte {
	b = append(b, n.prefix...)
	b = append(b, key.Kind...)
	b = append(b, ':')
	return append(b, key.Name...)
}

func (n names) appendFloor(b []byte, slot uint16) []byte {
	b = append(b, n.prefix...)
	b = append(b, "floor:{"...)
	b = append(b, conn.Tag(slot)...)
	return append(b, '}')
}

func (n names) appendTomb(b []byte, slot uint16, id string) []byte {
	b = append(b, n.prefix...)
	b = append(b, "gone:{"...)
	b = append(b, conn.Tag(slot)...)
	b = append(b, "}:"...)
	return append(b, id...)
}

// watchers returns the key of those who watch a lock or latch of that slot. It is a sorted set, see watch.go.
func (n names) watchers(slot uint16, key driver.Key) string {
	return n.prefix + "watching:{" + conn.Tag(slot) + "}:" + string(key.Kind) + ":" + key.Name
}

// alive returns the key of the processes that are alive and have waiters. It has no tag: a Cluster does not use it.
func (n names) alive() string { return n.prefix + "alive" }

// channel returns the channel on which a process is told of grants and breaks.
func (n names) channel(process string) string { return n.prefix + "push:" + process }

// shard returns the channel of a process for the grants of one slot, in a Cluster. Its tag puts it into the slot of the
// lock, as SPUBLISH in a script requires. The scripts build the same name.
func (n names) shard(process string, slot uint16) string {
	return n.channel(process) + ":{" + conn.Tag(slot) + "}"
}

// META, the JSON that operators see of a request. acquire.go sends it, and renew.go with each renewal; inspect.go and
// reply.go read it. The scripts look at its beginning only.

// retention says, in the META of a hold, whether its client may keep the lock after the last owner has released it
// (docs/rationale.md, Retention).
type retention uint8

const (
	unmarked  retention = iota // the client gives the lock back
	mayRetain                  // somebody holds the lock, and the client may keep it afterwards
	retained                   // no owner holds the lock, and the client keeps it
)

// meta is what operators see of a request. Scripts read no more of it than the mark at its beginning, so Retention must
// stay the first field.
type meta struct {
	Retention retention `json:"r,omitempty"`
	Owner     string    `json:"o"`
	Client    string    `json:"c,omitempty"`
	Label     string    `json:"l,omitempty"`
}

// parseMeta reads META. What cannot be read is not shown: it is only for people.
func parseMeta(s string) meta {
	m, is := plainMeta(s)
	if !is {
		_ = json.Unmarshal([]byte(s), &m) // what cannot be read is not shown
	}
	return m
}

// plainMeta reads what appendMeta has written if nothing in it is escaped, as is nearly always so. A JSON decoder would
// cost as much as the rest of a wait. It reports false if the text needs the decoder.
func plainMeta(s string) (m meta, is bool) {
	rest, ends := strings.CutSuffix(s, `"}`)
	rest, mark := cutMark(rest)
	rest, begins := strings.CutPrefix(rest, `"o":"`)
	if !ends || !begins || strings.IndexByte(rest, '\\') >= 0 {
		return m, false
	}
	m.Retention = mark
	rest, m.Label, _ = strings.Cut(rest, `","l":"`)
	m.Owner, m.Client, _ = strings.Cut(rest, `","c":"`)
	for _, part := range [...]string{m.Owner, m.Client, m.Label} {
		if strings.IndexByte(part, '"') >= 0 {
			return meta{}, false // other keys or another order: another program's
		}
	}
	return m, true
}

// cutMark cuts off the beginning of what appendMeta has written, up to the owner. It returns "" for anything else.
func cutMark(s string) (rest string, mark retention) {
	const width = len(`{"r":1,`)
	switch {
	case len(s) > width && strings.HasPrefix(s, `{"r":`) && s[width-2] > '0' && s[width-2] <= '9' && s[width-1] == ',':
		return s[width:], retention(s[width-2] - '0')
	case strings.HasPrefix(s, "{"):
		return s[1:], unmarked
	}
	return "", unmarked
}

// appendMeta appends m as JSON. The scripts look for the mark at its beginning. No text inside can look like the mark:
// within quotes, a quotation mark has a backslash before it.
func appendMeta(b []byte, m meta) []byte {
	b = append(b, '{')
	if m.Retention != unmarked {
		b = append(b, `"r":`...)
		b = append(b, '0'+byte(m.Retention), ',')
	}
	b = appendString(append(b, `"o":`...), m.Owner)
	if m.Client != "" {
		b = appendString(append(b, `,"c":`...), m.Client)
	}
	if m.Label != "" {
		b = appendString(append(b, `,"l":`...), m.Label)
	}
	return append(b, '}')
}

// appendString appends s as a JSON string. Nearly all are plain ASCII, and those need no encoder.
func appendString(b []byte, s string) []byte {
	for i := range len(s) {
		if c := s[i]; c < ' ' || c > '~' || c == '"' || c == '\\' {
			quoted, _ := json.Marshal(s) // a string can always be written
			return append(b, quoted...)
		}
	}
	return append(append(append(b, '"'), s...), '"')
}
