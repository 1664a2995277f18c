// Package d05owned is an exhibit, broken on purpose: its release is sound, by a script or by WATCH, but nothing renews
// the lease, and nothing stops a holder that has overrun it.
package d05owned

import (
	"context"
	"errors"
	"strconv"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// ErrNotOwner says that the lock was not released: somebody else has it, or nobody.
var ErrNotOwner = errors.New("not the owner")

// Lock is the key of one lock, seen by one client.
type Lock struct {
	Conn exhibit.Conn
	Key  string
}

// TryLock takes the lock for that many seconds in the name of owner.
func (l *Lock) TryLock(ctx context.Context, owner string, seconds int) (bool, error) {
	return exhibit.OK(l.Conn.Do(ctx, "SET", l.Key, owner, "NX", "EX", strconv.Itoa(seconds)))
}

// release compares and deletes in one step of the server.
const release = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) else return 0 end`

// UnlockByScript releases the lock if owner has it.
func (l *Lock) UnlockByScript(ctx context.Context, owner string) error {
	n, err := exhibit.Int(l.Conn.Do(ctx, "EVAL", release, "1", l.Key, owner))
	if err == nil && n == 0 {
		err = ErrNotOwner
	}
	return err
}

// UnlockByWatch does the same without a script: EXEC does nothing if the key has changed since WATCH.
func (l *Lock) UnlockByWatch(ctx context.Context, owner string) error {
	if _, err := l.Conn.Do(ctx, "WATCH", l.Key); err != nil {
		return err
	}
	value, _, err := exhibit.Text(l.Conn.Do(ctx, "GET", l.Key))
	if err != nil {
		return err
	}
	if value != owner {
		_, err := l.Conn.Do(ctx, "UNWATCH")
		return errors.Join(ErrNotOwner, err)
	}
	for _, command := range [][]string{{"MULTI"}, {"DEL", l.Key}} {
		if _, err := l.Conn.Do(ctx, command...); err != nil {
			return err
		}
	}
	done, err := l.Conn.Do(ctx, "EXEC")
	if err == nil && done == nil {
		err = ErrNotOwner
	}
	return err
}
