// Package d02expire is an exhibit, broken on purpose: SETNX and then EXPIRE, two commands, with a gap between them; and
// the repair that the article on the marketplace makes.
package d02expire

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

// TryLock takes the lock and then gives it an expiry. Who dies in between leaves a key without one.
func (l *Lock) TryLock(ctx context.Context, value string, seconds int) (bool, error) {
	n, err := exhibit.Int(l.Conn.Do(ctx, "SETNX", l.Key, value))
	if err != nil || n != 1 {
		return false, err
	}
	_, err = l.Conn.Do(ctx, "EXPIRE", l.Key, strconv.Itoa(seconds))
	return err == nil, err
}

// Unlock deletes the key.
func (l *Lock) Unlock(ctx context.Context) error {
	_, err := l.Conn.Do(ctx, "DEL", l.Key)
	return err
}

// lockTimeout is 20 seconds, in milliseconds. EXPIRE takes seconds.
const lockTimeout = 20000

// AcquireRepaired is the marketplace's loop: a waiter that finds a key without expiry gives it one. It goes on until
// ctx ends, without a pause.
func (l *Lock) AcquireRepaired(ctx context.Context, value string) (bool, error) {
	for ctx.Err() == nil {
		n, err := exhibit.Int(l.Conn.Do(ctx, "SETNX", l.Key, value))
		if err != nil {
			return false, err
		}
		if n == 1 {
			_, err = l.Conn.Do(ctx, "EXPIRE", l.Key, strconv.Itoa(lockTimeout))
			return err == nil, err
		}
		left, err := exhibit.Int(l.Conn.Do(ctx, "TTL", l.Key))
		if err != nil {
			return false, err
		}
		if left == -1 {
			if _, err := l.Conn.Do(ctx, "EXPIRE", l.Key, strconv.Itoa(lockTimeout)); err != nil {
				return false, err
			}
		}
	}
	return false, nil
}
