// Package d08hash is an exhibit, broken on purpose: the count of re-entries is in a hash in Redis, by sound scripts,
// and a timer renews the lease. The class around them is what is broken; it is ported here method by method.
package d08hash

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// ErrNotOwner says that the owner does not hold the lock.
var ErrNotOwner = errors.New("not the owner")

// Lock is one lock, seen by one owner.
type Lock struct {
	Conn  exhibit.Conn
	Key   string
	Owner string

	Sleep func(time.Duration)         // between two tries
	After func(time.Duration, func()) // starts a timer

	seconds int64 // the lease
}

// The scripts, which are sound.
const (
	acquire = `
if redis.call('EXISTS', KEYS[1]) == 0 or redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then
	redis.call('HINCRBY', KEYS[1], ARGV[1], 1)
	redis.call('EXPIRE', KEYS[1], ARGV[2])
	return 1
end
return 0`

	release = `
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return nil end
if redis.call('HINCRBY', KEYS[1], ARGV[1], -1) == 0 then return redis.call('DEL', KEYS[1]) end
return 0`

	renew = `
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 1 then return redis.call('EXPIRE', KEYS[1], ARGV[2]) end
return 0`
)

// New returns a lock with a lease of 30 s.
func New(conn exhibit.Conn, key, owner string) *Lock {
	return &Lock{Conn: conn, Key: key, Owner: owner, seconds: 30}
}

// Lock takes the lock.
func (l *Lock) Lock(ctx context.Context) error {
	_, err := l.TryLock(ctx)
	return err
}

// LockInterruptibly was left empty in the source, and so it returns, without the lock.
func (*Lock) LockInterruptibly(context.Context) error { return nil }

// TryLock is to say false when another has the lock. It goes on until it can say true.
func (l *Lock) TryLock(ctx context.Context) (bool, error) { return l.TryLockFor(ctx, -1) }

// TryLockFor is to wait that long at most. It makes that time the lease, in whole seconds, and waits for ever.
func (l *Lock) TryLockFor(ctx context.Context, wait time.Duration) (bool, error) {
	if wait != -1 {
		l.seconds = int64(wait / time.Second)
	}
	for {
		got, err := exhibit.Int(l.eval(ctx, acquire))
		if err != nil {
			return false, err
		}
		if got == 1 {
			break
		}
		l.Sleep(50 * time.Millisecond)
	}
	l.renewLater(ctx)
	return true, nil
}

// renewLater starts a timer that renews the lease and starts the next one. Nothing ever cancels it.
func (l *Lock) renewLater(ctx context.Context) {
	l.After(time.Duration(l.seconds)*time.Second/3, func() {
		if done, err := exhibit.Int(l.eval(ctx, renew)); err == nil && done == 1 {
			l.renewLater(ctx)
		}
	})
}

// Unlock ends one hold.
func (l *Lock) Unlock(ctx context.Context) error {
	reply, err := l.Conn.Do(ctx, "EVAL", release, "1", l.Key, l.Owner)
	if err == nil && reply == nil {
		err = ErrNotOwner
	}
	return err
}

func (l *Lock) eval(ctx context.Context, script string) (any, error) {
	return l.Conn.Do(ctx, "EVAL", script, "1", l.Key, l.Owner, strconv.FormatInt(l.seconds, 10))
}
