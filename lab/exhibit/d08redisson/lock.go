// Package d08redisson is an exhibit, broken on purpose: the lock that Redisson's RLock keeps in Redis, without the Java
// around it. The scripts are the lab's own words; keys, commands, channel and answers are Redisson's. Count, owner and
// lease are sound. It keeps no order among the waiters, and it has no token that a resource could compare. For these
// two Redisson has other classes, getFairLock and getFencedLock.
package d08redisson

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/lab/exhibit"
)

// ErrNotOwner says that the thread does not hold the lock.
var ErrNotOwner = errors.New("not locked by this thread")

// Lock is one lock, seen by one thread of one client.
type Lock struct {
	Conn   exhibit.Conn
	Key    string
	Client string // a UUID that each client makes at its start
	Thread int

	Subscribe exhibit.Subscribe
	Waiting   func() // hears that it waits for a message
	Woken     func() // hears that one came, before the client does anything
}

// lease is what the watchdog renews at each third of it.
const lease = 30 * time.Second

const (
	acquire = `
local free = redis.call('EXISTS', KEYS[1]) == 0
if free or redis.call('HEXISTS', KEYS[1], ARGV[2]) == 1 then
	redis.call('HINCRBY', KEYS[1], ARGV[2], 1)
	redis.call('PEXPIRE', KEYS[1], ARGV[1])
	return nil
end
return redis.call('PTTL', KEYS[1])`

	release = `
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return nil end
if redis.call('HINCRBY', KEYS[1], ARGV[2], -1) > 0 then
	redis.call('PEXPIRE', KEYS[1], ARGV[1])
	return 0
end
redis.call('DEL', KEYS[1])
redis.call('PUBLISH', KEYS[2], 0)
return 1`

	renew = `
if redis.call('HEXISTS', KEYS[1], ARGV[2]) == 0 then return 0 end
return redis.call('PEXPIRE', KEYS[1], ARGV[1])`
)

// Channel is where a release is told.
func (l *Lock) Channel() string { return "redisson_lock__channel:{" + l.Key + "}" }

// field is the owner: a thread of a client. Its value is the count.
func (l *Lock) field() string { return fmt.Sprintf("%s:%d", l.Client, l.Thread) }

// TryLock takes the lock, once more if the thread has it. If another has it, left is what is left of the lease.
func (l *Lock) TryLock(ctx context.Context) (got bool, left time.Duration, err error) {
	reply, err := l.eval(ctx, acquire, l.Key)
	if err != nil || reply == nil {
		return err == nil, 0, err
	}
	ms, err := exhibit.Int(reply, nil)
	return false, time.Duration(ms) * time.Millisecond, err
}

// Lock waits for the lock: after each message, and when the lease is over, it tries again like everybody else.
func (l *Lock) Lock(ctx context.Context) error {
	got, _, err := l.TryLock(ctx)
	if err != nil || got {
		return err
	}
	next, err := l.Subscribe(ctx, l.Channel())
	if err != nil {
		return err
	}
	for {
		got, left, err := l.TryLock(ctx) // it may have become free before the subscription
		if err != nil || got {
			return err
		}
		l.Waiting()
		if err := await(ctx, next, left); err != nil {
			return err
		}
		l.Woken()
	}
}

// await waits for a message, or until the lease of whoever has the lock is over. A broken subscription is an error:
// nothing would pause the loop any more. A lock without a lease, which this class never takes, leaves only the message.
func await(ctx context.Context, next func(context.Context) error, left time.Duration) error {
	wait := ctx
	if left >= 0 {
		lease, cancel := context.WithTimeout(ctx, left)
		defer cancel()
		wait = lease
	}
	if err := next(wait); wait.Err() == nil {
		return err
	}
	return ctx.Err() // nil at the end of the lease
}

// Renew is the watchdog's, who calls it while the thread holds the lock.
func (l *Lock) Renew(ctx context.Context) (bool, error) {
	n, err := exhibit.Int(l.eval(ctx, renew, l.Key))
	return n == 1, err
}

// Unlock ends one hold; the last one tells all waiters.
func (l *Lock) Unlock(ctx context.Context) error {
	reply, err := l.eval(ctx, release, l.Key, l.Channel())
	if err == nil && reply == nil {
		err = ErrNotOwner
	}
	return err
}

func (l *Lock) eval(ctx context.Context, script string, keys ...string) (any, error) {
	args := append([]string{"EVAL", script, strconv.Itoa(len(keys))}, keys...)
	return l.Conn.Do(ctx, append(args, strconv.FormatInt(lease.Milliseconds(), 10), l.field())...)
}
