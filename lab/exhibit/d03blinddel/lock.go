// Package d03blinddel is an exhibit, broken on purpose: SET with NX and EX, which is one step, and a DEL that does not
// ask whose lock it deletes.
package d03blinddel

import (
	"context"
	"strconv"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// Lock is the key of one lock, seen by one client.
type Lock struct {
	Conn exhibit.Conn
	Key  string
}

// TryLock takes the lock for that many seconds. The value says nothing about who has it.
func (l *Lock) TryLock(ctx context.Context, seconds int) (bool, error) {
	return exhibit.OK(l.Conn.Do(ctx, "SET", l.Key, "true", "NX", "EX", strconv.Itoa(seconds)))
}

// Unlock deletes the key, whosever it is.
func (l *Lock) Unlock(ctx context.Context) error {
	_, err := l.Conn.Do(ctx, "DEL", l.Key)
	return err
}
