// The slots of a Cluster, and the tags by which our own keys get into a slot. redislock/format.go builds keys with
// them; wire.md has the rules and examples.

package conn

import (
	"strings"
	"sync"
)

// Slots is the number of slots of a Redis Cluster. Outside of a Cluster the tags are used all the same, so that the
// keys of a deployment do not depend on its topology.
const Slots = 16384

// SlotOf returns the slot of a key: that of the text between the first opening brace and the next closing one, or of
// the whole key if there is no such text or it is empty. See the Redis Cluster specification.
func SlotOf(key string) uint16 {
	if open := strings.IndexByte(key, '{'); open >= 0 {
		if length := strings.IndexByte(key[open+1:], '}'); length > 0 {
			key = key[open+1 : open+1+length]
		}
	}
	return crc16(key) % Slots
}

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

// Tag returns a short tag for a slot: a key with it in braces is in that slot. It is the first of a, b, ... whose own
// slot it is, so every program, in whatever language, finds the same tags.
func Tag(slot uint16) string { return tags()[slot] }

// tags has the tag of each slot. It is computed when it is first needed: some milliseconds, once in a process.
var tags = sync.OnceValue(func() *[Slots]string {
	var found [Slots]string
	for left, n := Slots, 0; left > 0; n++ {
		tag := tagNumber(n)
		if slot := crc16(tag) % Slots; found[slot] == "" {
			found[slot] = tag
			left--
		}
	}
	return &found
})

// tagNumber writes n with the digits a to z, the lowest digit first.
func tagNumber(n int) string {
	var digits []byte
	for {
		digits = append(digits, byte('a'+n%26))
		if n /= 26; n == 0 {
			return string(digits)
		}
	}
}
