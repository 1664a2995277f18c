package redislock

import (
	"slices"
	"strings"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// slots is how many a Redis Cluster has.
const slots = 16384

// names makes the keys and channels of a prefix. A lock's own key carries its name, and the tag in braces that the name
// may have decides its slot as for any other key of the user's. What else belongs to the lock (the floor of tokens, the
// tombstones of requests) is put into the same slot by a tag of ours.
type names struct{ prefix string }

// lock returns the key of a lock and its slot.
func (n names) lock(key driver.Key) (name string, slot uint16) {
	name = string(n.appendLock(nil, key))
	return name, slotOf(name)
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

// request returns the keys that the script of one request needs: of the lock, of the slot's floor, and of the tombstone of
// that ID. They are cut from one string, because there is a set of them for each acquisition and each release.
func (n names) request(key driver.Key, id string) (keys [3]string, slot uint16) {
	b := n.appendLock(make([]byte, 0, 256), key)
	first := len(b)
	slot = slotOf(string(b))
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
	b = append(b, tags()[slot]...)
	return append(b, '}')
}

func (n names) appendTomb(b []byte, slot uint16, id string) []byte {
	b = append(b, n.prefix...)
	b = append(b, "gone:{"...)
	b = append(b, tags()[slot]...)
	b = append(b, "}:"...)
	return append(b, id...)
}

// watchers returns the key that lists who watches a lock or latch of that slot.
func (n names) watchers(slot uint16, key driver.Key) string {
	return n.prefix + "watching:{" + tags()[slot] + "}:" + string(key.Kind) + ":" + key.Name
}

// alive returns the key of the processes that are alive and have waiters.
func (n names) alive() string { return n.prefix + "alive" }

// channel returns the channel of a process, on which it is told of grants and breaks.
func (n names) channel(process string) string { return n.prefix + "push:" + process }

// shard returns the channel of a process for the grants of one slot, in a Cluster. Scripts make it in the same way.
func (n names) shard(process string, slot uint16) string {
	return n.channel(process) + ":{" + tags()[slot] + "}"
}

// slotOf returns the slot of a key: that of what is between the first opening brace and the next closing one, if that is
// not empty, and else of the whole key. See the Redis Cluster specification.
func slotOf(key string) uint16 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	return crc16(key) % slots
}

// SlotOf returns the slot of a key, for a [Call] of a package that builds on this one.
func SlotOf(key string) uint16 { return slotOf(key) }

// crc16 is CRC-16/XMODEM: polynomial 0x1021, no reflection, starting from 0.
func crc16(s string) uint16 {
	table := crcTable()
	var crc uint16
	for i := range len(s) {
		crc = crc<<8 ^ table[byte(crc>>8)^s[i]]
	}
	return crc
}

var crcTable = sync.OnceValue(func() *[256]uint16 {
	var table [256]uint16
	for i := range table {
		crc := uint16(i) << 8
		for range 8 {
			carry := crc&0x8000 != 0
			crc <<= 1
			if carry {
				crc ^= 0x1021
			}
		}
		table[i] = crc
	}
	return &table
})

// tags returns a short tag for each slot: the first of a, b, ... that falls into it. Whoever counts in the same way, in
// whatever language, finds the same tags.
var tags = sync.OnceValue(func() *[slots]string {
	var found [slots]string
	for left, n := slots, 0; left > 0; n++ {
		tag := tagNumber(n)
		if slot := crc16(tag) % slots; found[slot] == "" {
			found[slot] = tag
			left--
		}
	}
	return &found
})

// tagNumber writes n with the digits a to z, the last digit first.
func tagNumber(n int) string {
	var digits []byte
	for {
		digits = append(digits, byte('a'+n%26))
		if n /= 26; n == 0 {
			return string(digits)
		}
	}
}
