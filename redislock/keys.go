package redislock

import (
	"slices"
	"strings"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
)

// names makes the keys and channels of a prefix. A lock's own key carries its name, and the tag in braces that the name
// may have decides its slot as for any other key of the user's. What else belongs to the lock (the floor of tokens, the
// tombstones of requests) is put into the same slot by a tag of ours.
type names struct{ prefix string }

// lock returns the key of a lock and its slot.
func (n names) lock(key driver.Key) (name string, slot uint16) {
	name = string(n.appendLock(nil, key))
	return name, conn.SlotOf(name)
}

// lockOf is the reverse of lock. It reports false for what is no lock.
func (n names) lockOf(name string) (key driver.Key, is bool) {
	rest, ours := strings.CutPrefix(name, n.prefix)
	kind, lock, cut := strings.Cut(rest, ":")
	return driver.Key{Kind: driver.Kind(kind), Name: lock}, ours && cut && slices.Contains(kinds, driver.Kind(kind))
}

// floor returns the key under which a slot keeps the largest token of all locks in it.
func (n names) floor(slot uint16) string { return string(n.appendFloor(nil, slot)) }

// tomb returns the key that refuses a request that is over.
func (n names) tomb(slot uint16, id string) string { return string(n.appendTomb(nil, slot, id)) }

// request returns the keys that the script of one request needs: of the lock, of the slot's floor, and of the tombstone
// of that ID. They are cut from one string, because there is a set of them for each acquisition and each release.
func (n names) request(key driver.Key, id string) (keys [3]string, slot uint16) {
	b := n.appendLock(make([]byte, 0, 256), key)
	first := len(b)
	slot = conn.SlotOf(string(b))
	b = n.appendFloor(b, slot)
	second := len(b)
	all := string(n.appendTomb(b, slot, id))
	return [3]string{all[:first], all[first:second], all[second:]}, slot
}

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

// watchers returns the key that lists who watches a lock or latch of that slot.
func (n names) watchers(slot uint16, key driver.Key) string {
	return n.prefix + "watching:{" + conn.Tag(slot) + "}:" + string(key.Kind) + ":" + key.Name
}

// alive returns the key of the processes that are alive and have waiters.
func (n names) alive() string { return n.prefix + "alive" }

// channel returns the channel of a process, on which it is told of grants and breaks.
func (n names) channel(process string) string { return n.prefix + "push:" + process }

// shard returns the channel of a process for the grants of one slot, in a Cluster. Scripts make it in the same way.
func (n names) shard(process string, slot uint16) string {
	return n.channel(process) + ":{" + conn.Tag(slot) + "}"
}
