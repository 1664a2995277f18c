package peer

import (
	"context"
	"crypto/rand"
	"errors"
	"strconv"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// setNX is the floor of a lock that nobody disturbs: less than these two round trips is no lock with a lease.
func setNX() Spec {
	return Spec{
		Name: "set-nx",
		Does: "by hand, through rueidis with default options: SET NX PX with a value of its own, and a script that " +
			"deletes the key if it still has that value; a refused client asks again after a millisecond; nothing " +
			"is renewed",
		Redis: true, Sends: []string{"set"},
		Open: func(_ context.Context, at Place) (Peer, error) {
			return openByHand(at, func(c rueidis.Client, lease time.Duration) takeKey {
				return func(ctx context.Context, key, value string) error {
					return c.Do(ctx, c.B().Set().Key(key).Value(value).Nx().Px(lease).Build()).Error()
				}
			})
		},
	}
}

// takeWithToken is the shortest script that takes a lock and mints a fencing token in the same step. The token is the
// server's clock, or one more than the last where that is larger, as it has to grow through a failover.
const takeWithToken = `
if not redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return false end
local time, last = redis.call('TIME'), redis.call('GET', KEYS[2])
local token = time[1] .. string.sub('00000' .. time[2], -6)
if last and last >= token then token = string.format('%.0f', last + 1) end
redis.call('SET', KEYS[2], token)
return token`

// setNXFenced is what set-nx costs if its lock must help a client that was paused: the least that any lock with tokens
// costs.
func setNXFenced() Spec {
	return Spec{
		Name: "set-nx-fenced",
		Does: "by hand, as set-nx, but a script of six lines takes the lock and mints a fencing token in the same " +
			"step: the least that any lock with tokens costs; no queue, no renewal, and a request repeated after a " +
			"lost reply is not known",
		Redis: true,
		Open: func(_ context.Context, at Place) (Peer, error) {
			return openByHand(at, func(c rueidis.Client, lease time.Duration) takeKey {
				script, ms := rueidis.NewLuaScript(takeWithToken), strconv.FormatInt(lease.Milliseconds(), 10)
				return func(ctx context.Context, key, value string) error {
					_, err := script.Exec(ctx, c, []string{key, key + ":token"}, []string{value, ms}).AsUint64()
					return err
				}
			})
		},
	}
}

// setNXPool shows which part of a difference is the client library's: redsync and redislock use this one.
func setNXPool() Spec {
	return Spec{
		Name: "set-nx-pool",
		Does: "the same as set-nx through go-redis with default options, which takes a connection from a pool for " +
			"each call",
		Redis: true, Sends: []string{"set"},
		Open: func(_ context.Context, at Place) (Peer, error) {
			c, script, lease := newGoRedis(at), goredis.NewScript(compareAndDelete), at.leaseOr(usualLease)
			return &byHand{
				take: func(ctx context.Context, key, value string) error {
					return c.SetArgs(ctx, key, value, goredis.SetArgs{Mode: "NX", TTL: lease}).Err()
				},
				give: func(ctx context.Context, key, value string) (int64, error) {
					return script.Run(ctx, c, []string{key}, value).Int64()
				},
				isTaken: func(err error) bool { return errors.Is(err, goredis.Nil) },
				close:   c.Close, me: rand.Text(),
			}, nil
		},
	}
}

// takeKey sets a key that is free.
type takeKey func(ctx context.Context, key, value string) error

// openByHand is byHand through rueidis.
func openByHand(at Place, take func(c rueidis.Client, lease time.Duration) takeKey) (Peer, error) {
	c, err := newRueidis(at)
	if err != nil {
		return nil, err
	}
	script := rueidis.NewLuaScript(compareAndDelete)
	return &byHand{
		take: take(c, at.leaseOr(usualLease)),
		give: func(ctx context.Context, key, value string) (int64, error) {
			return script.Exec(ctx, c, []string{key}, []string{value}).AsInt64()
		},
		isTaken: rueidis.IsRedisNil,
		close:   func() error { c.Close(); return nil },
		me:      rand.Text(),
	}, nil
}

// byHand is a lock of a few lines on some client.
type byHand struct {
	take    takeKey
	isTaken func(error) bool                                                  // by somebody else
	give    func(ctx context.Context, key, value string) (n int64, err error) // how many keys were deleted
	close   func() error
	me      string
	workers int
}

// Worker returns a worker with values that nobody else has.
func (b *byHand) Worker(name string) (Worker, error) {
	b.workers++
	return &byHandWorker{byHand: b, key: name, prefix: b.me + "." + strconv.Itoa(b.workers) + "."}, nil
}

// Close closes the client.
func (b *byHand) Close() error { return b.close() }

type byHandWorker struct {
	*byHand
	key    string
	prefix string
	n      int    // acquisitions
	value  string // of the present one
}

// Lock asks until the key is set.
func (w *byHandWorker) Lock(ctx context.Context) error {
	w.n++
	w.value = w.prefix + strconv.Itoa(w.n)
	for {
		if err := w.take(ctx, w.key, w.value); !w.isTaken(err) {
			return err
		}
		if !enginekit.Pause(ctx, time.Millisecond) {
			return ctx.Err()
		}
	}
}

// Unlock deletes the key.
func (w *byHandWorker) Unlock(ctx context.Context) error {
	n, err := w.give(ctx, w.key, w.value)
	if err == nil && n != 1 {
		return ErrLost
	}
	return err
}
