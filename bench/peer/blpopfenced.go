package peer

import (
	"context"
	"errors"
	"fmt"
	"strconv"

	"github.com/redis/rueidis"
)

// handOverWithToken is a short script with which an owner gives a lock back and the next one has a fencing token and a
// lease: it looks whether the lock is still that of the token ARGV[1], mints the next token as set-nx-fenced does, sets
// it for ARGV[2] ms and puts it into the list, where who waits longest finds it. Tokens that need not grow through a
// failover would spare TIME, one of its four calls.
//
// KEYS[1] is the list, KEYS[2] the lock. It returns whether the lock was held.
const handOverWithToken = `
if redis.call('GET', KEYS[2]) ~= ARGV[1] then return 0 end
local time = redis.call('TIME')
local token = time[1] .. string.sub('00000' .. time[2], -6)
if ARGV[1] >= token then token = string.format('%.0f', ARGV[1] + 1) end
redis.call('SET', KEYS[2], token, 'PX', ARGV[2])
redis.call('LPUSH', KEYS[1], token)
return 1`

// seedWithToken is seed for one element, which is a token.
const seedWithToken = `
if redis.call('SETNX', KEYS[2], '1000000000000000') == 1 then redis.call('LPUSH', KEYS[1], '1000000000000000') end
return 1`

// blpopFenced is what blpop costs if its lock must help a client that was paused: about the least that any hand-off of
// a lock with an owner, a lease and a token costs. If a holder or who waits dies nobody gets it any more; nor if a
// lease runs out, which begins with the hand-over, also when nobody waits.
func blpopFenced() Spec {
	return Spec{
		Name: "blpop-fenced",
		Does: "the same, but a script of seven lines checks that the caller still holds the lock, " +
			"mints the next fencing token, sets a lease and puts the token into the list: about the least that a " +
			"hand-off with an owner, a lease and a token costs; nothing is renewed, and nobody gets the lock any " +
			"more when a lease has run out, its holder has died, or a reply was lost",
		Redis: true,
		Open: func(_ context.Context, at Place) (Peer, error) {
			c, err := newRueidis(at)
			if err != nil {
				return nil, err
			}
			return &relay{
				client: c, seed: rueidis.NewLuaScript(seedWithToken), give: rueidis.NewLuaScript(handOverWithToken),
				lease: strconv.FormatInt(at.leaseOr(usualLease).Milliseconds(), 10),
			}, nil
		},
	}
}

type relay struct {
	client     rueidis.Client
	seed, give *rueidis.Lua
	lease      string // in ms
}

// Worker returns a worker on the list, which has its token then.
func (r *relay) Worker(name string) (Worker, error) {
	w := &relayWorker{relay: r, keys: []string{"list:" + name, "owner:" + name}}
	return w, r.seed.Exec(context.Background(), r.client, w.keys, nil).Error()
}

// Close closes the client.
func (r *relay) Close() error {
	r.client.Close()
	return nil
}

type relayWorker struct {
	*relay
	keys  []string
	token string
}

// Lock takes the token.
func (w *relayWorker) Lock(ctx context.Context) error {
	got, err := pop(ctx, w.client, w.keys[0])
	if err != nil {
		return err
	}
	pair, err := got.AsStrSlice()
	if err != nil {
		return err
	}
	if len(pair) != 2 { // the list and what was in it
		return fmt.Errorf("BLPOP has answered %q", pair)
	}
	w.token = pair[1]
	return nil
}

// Unlock hands the lock to the longest waiter.
func (w *relayWorker) Unlock(ctx context.Context) error {
	held, err := w.give.Exec(ctx, w.client, w.keys, []string{w.token, w.lease}).AsInt64()
	if err == nil && held != 1 {
		err = errors.New("the lock was not held any more")
	}
	return err
}
