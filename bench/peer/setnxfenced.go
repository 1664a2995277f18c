package peer

import (
	"context"
	"crypto/rand"
	"strconv"
	"time"

	"github.com/redis/rueidis"
)

// takeWithToken is the shortest script that takes a lock and mints a fencing token in the same step. The token is the
// server's clock, or one more than the last where that is larger, as it has to grow through a failover.
const takeWithToken = `
if not redis.call('SET', KEYS[1], ARGV[1], 'PX', ARGV[2], 'NX') then return false end
local time, last = redis.call('TIME'), redis.call('GET', KEYS[2])
local token = time[1] .. string.sub('00000' .. time[2], -6)
if last and last >= token then token = string.format('%.0f', last + 1) end
redis.call('SET', KEYS[2], token)
return token`

// setNXFenced is what set-nx costs if its lock is to be of use to who is paused: the least that any lock with tokens costs.
func setNXFenced() Spec {
	return Spec{
		Name: "set-nx-fenced",
		Does: "by hand, as set-nx, but a script of six lines takes the lock and mints a fencing token in the same step: the least " +
			"that any lock with tokens costs; no queue, no renewal, and a request repeated after a lost reply is not known",
		Redis: true,
		Open: func(_ context.Context, at Place) (Peer, error) {
			c, err := newRueidis(at)
			if err != nil {
				return nil, err
			}
			return &fenced{
				bare: bare{client: c, script: rueidis.NewLuaScript(compareAndDelete), lease: at.leaseOr(usualLease), me: rand.Text()},
				take: rueidis.NewLuaScript(takeWithToken),
			}, nil
		},
	}
}

type fenced struct {
	bare
	take *rueidis.Lua
}

// Worker returns a worker with values of its own.
func (f *fenced) Worker() (Worker, error) { return f.WorkerOn(lockName) }

// WorkerOn is Worker on another lock.
func (f *fenced) WorkerOn(name string) (Worker, error) {
	return &fencedWorker{bareWorker: bareWorker{bare: &f.bare, key: name, values: f.named.values(f.me)}, take: f.take}, nil
}

type fencedWorker struct {
	bareWorker
	take *rueidis.Lua
}

// Lock asks until the key is set, and reads the token.
func (w *fencedWorker) Lock(ctx context.Context) error {
	w.next()
	lease := strconv.FormatInt(w.lease.Milliseconds(), 10)
	for {
		_, err := w.take.Exec(ctx, w.client, []string{w.key, w.key + ":token"}, []string{w.value, lease}).AsUint64()
		if !rueidis.IsRedisNil(err) {
			return err
		}
		if err := pause(ctx, time.Millisecond); err != nil {
			return err
		}
	}
}
