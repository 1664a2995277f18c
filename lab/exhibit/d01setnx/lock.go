// Package d01setnx is an exhibit, broken on purpose: SETNX to lock and DEL to unlock, as the articles begin.
package d01setnx

import (
	"context"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// Lock is the key of one lock, seen by one client.
type Lock struct {
	Conn exhibit.Conn
	Key  string
}

// TryLock takes the lock if the key does not exist. The key has no expiry: whoever dies now leaves it behind for ever.
func (l *Lock) TryLock(ctx context.Context, value string) (bool, error) {
	n, err := exhibit.Int(l.Conn.Do(ctx, "SETNX", l.Key, value))
	return n == 1, err
}

// Unlock deletes the key.
func (l *Lock) Unlock(ctx context.Context) error {
	_, err := l.Conn.Do(ctx, "DEL", l.Key)
	return err
}
