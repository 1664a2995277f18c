// The names of nodes; wire.md has all of them. put.go and inspect.go use them.
//
// The encoding is part of the format: two clients that wrote a name differently would each have the lock. So every name
// of a lock has a node, no two names share one, and a node that encode would not write is nobody's lock.

package zklock

import (
	"strings"

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
