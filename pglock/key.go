// From a lock's name to the number by which PostgreSQL knows it. dialect.go calls it for each request, record.go for
// each look.

package pglock

import (
	"crypto/sha256"
	"encoding/binary"
	"strconv"

	"github.com/interlock-go/interlock/driver"
)

// hasher makes the number of an advisory lock from a lock's key. Tests put in one whose numbers collide.
type hasher func(table string, key driver.Key, probe int) int64

// hash returns the number under which PostgreSQL knows a lock: the first eight bytes, big endian, of the SHA-256 sum of
// table, kind, probe and name, with a zero byte after each of the first three. The table's identity is in it so that
// two sets of locks in one database do not meet. Neither table nor kind nor probe has a zero byte, so no two locks have
// the same text.
//
// Two names with the same number are found out by the row of that number, which carries the name. The later one moves
// on to its next probe; see move.go of sqlsession.
func hash(table string, key driver.Key, probe int) int64 {
	b := make([]byte, 0, 640)
	b = append(append(b, table...), 0)
	b = append(append(b, key.Kind...), 0)
	b = append(append(b, strconv.Itoa(probe)...), 0)
	b = append(b, key.Name...)
	sum := sha256.Sum256(b)
	return int64(binary.BigEndian.Uint64(sum[:]))
}
