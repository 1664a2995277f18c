// Package d09replica is an exhibit, broken on purpose: the lock that is sound on one Redis, used on one that has a
// replica to take its place. The replica gets writes a moment later, and a lock that it has not got is granted again.
package d09replica

import (
	"context"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// Lock is the key of one lock on the server that is the primary at the moment.
type Lock struct {
	Conn exhibit.Conn
	Key  string
}

// TryLock takes the lock for the time given in the name of owner.
func (l *Lock) TryLock(ctx context.Context, owner string, lease time.Duration) (bool, error) {
	return exhibit.OK(l.Conn.Do(ctx, "SET", l.Key, owner, "NX", "PX", strconv.FormatInt(lease.Milliseconds(), 10)))
}
