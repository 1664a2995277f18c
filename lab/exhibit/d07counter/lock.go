// Package d07counter is an exhibit, broken on purpose: a re-entrant lock whose holds are counted in the client, for
// each of its threads, while the server knows nothing of the count.
package d07counter

import (
	"context"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// Lock is the key of one lock, seen by one thread of a client.
type Lock struct {
	Conn exhibit.Conn
	Key  string

	count int // what a thread-local variable holds in the source
}

// lease is 5 seconds, in milliseconds. Re-entry passes the same number to EXPIRE, which takes seconds.
const lease = "5000"

// Count returns how often this thread believes to hold the lock.
func (l *Lock) Count() int { return l.count }

// TryLock takes the lock, or once more if the counter says that this thread has it.
func (l *Lock) TryLock(ctx context.Context, owner string) (bool, error) {
	if l.count > 0 {
		l.count++
		_, err := l.Conn.Do(ctx, "EXPIRE", l.Key, lease)
		return err == nil, err
	}
	l.count = 1 // before anybody knows whether it worked, as in the source
	return exhibit.OK(l.Conn.Do(ctx, "SET", l.Key, owner, "NX", "PX", lease))
}

// Unlock deletes the key when the counter is back at zero. It reports false for a thread whose counter says that it
// has no lock.
func (l *Lock) Unlock(ctx context.Context) (bool, error) {
	if l.count == 0 {
		return false, nil
	}
	if l.count--; l.count > 0 {
		return true, nil
	}
	_, err := l.Conn.Do(ctx, "DEL", l.Key)
	return err == nil, err
}
