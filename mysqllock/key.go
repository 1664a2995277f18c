// From a lock's name to the name that GET_LOCK is asked for. dialect.go makes it for each request, break.go and look.go
// for operators.

package mysqllock

import (
	"crypto/sha256"
	"encoding/hex"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
)

// lockID is what the server knows a lock by: the first 30 bytes of the SHA-256 sum of scope, kind and name with a zero
// byte between them. Names of GET_LOCK have at most 64 characters and do not tell upper from lower case, so a lock's
// own name cannot be used; 30 bytes in hexadecimal digits and the prefix are 64 characters.
type lockID [30]byte

const (
	// lockPrefix begins the name that GET_LOCK is asked for. The 1 is the version of this format; see wire.md.
	lockPrefix = "il1:"

	// markPrefix begins the name of the lock that each session takes for itself; see speaker.mark. No lock's name
	// begins with it, so the two never meet.
	markPrefix = "il1s:"
)

// idOf returns the identity of a lock. The scope is the database and the table: GET_LOCK knows one set of names for the
// whole server, and locks of two tables must not meet. Neither scope nor kind has a zero byte, so no two locks have the
// same text.
func idOf(scope string, key driver.Key) lockID {
	b := make([]byte, 0, 640)
	b = append(append(b, scope...), 0)
	b = append(append(b, key.Kind...), 0)
	b = append(b, key.Name...)
	sum := sha256.Sum256(b)
	return lockID(sum[:len(lockID{})])
}

// hex is the identity in digits, as it stands in statements and names.
func (id lockID) hex() string { return hex.EncodeToString(id[:]) }

// lock is the name for GET_LOCK.
func (id lockID) lock() string { return lockPrefix + id.hex() }

// core is the identity as sqlsession knows it, which has room for more bytes.
func (id lockID) core() (c sqlsession.LockID) {
	copy(c[:], id[:])
	return c
}

// lockOf is the identity of the lock of e.
func lockOf(e *sqlsession.Entry) lockID {
	c := e.Lock()
	return lockID(c[:len(lockID{})])
}
