// Package d02expire is an exhibit, broken on purpose: SETNX and then EXPIRE, two commands, with a gap between them; and
// the repair that the article on the marketplace makes.
package d02expire

import (
	"context"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// Lock is the key of one lock, seen by one client.
type Lock struct {
	Conn exhibit.Conn
	Key  string
	Now  func() time.Time // the client's clock
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

// The times of the marketplace's loop.
const (
	acquireTimeout = 10 * time.Second
	lockTimeout    = 20000 // 20 seconds were meant, in milliseconds; EXPIRE takes seconds
)

// AcquireRepaired is the marketplace's loop: a waiter that finds a key without expiry gives it one. It tries for ten
// seconds, without a pause.
func (l *Lock) AcquireRepaired(ctx context.Context, value string) (bool, error) {
	for end := l.Now().Add(acquireTimeout); l.Now().Before(end); {
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
