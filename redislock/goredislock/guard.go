// The fence for data in Redis, over a go-redis client. redislock's guard.go builds the calls; here they are sent.

package goredislock

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/go-redis/v9"
)

// Guard is a fence for data in Redis, over a go-redis client. It does what [redislock.Guard] does; its documentation
// says what is promised, what is not, and which rights a user needs. Guards over both libraries on one server are one
// fence. A Guard keeps nothing itself and is safe for concurrent use.
//
// Every method costs one round trip, and one more when the server does not know the script. An error that is no
// *fence.StaleError is the server's or the network's; after the latter it is unknown whether the script ran. It is not
// sent again, whatever the client's MaxRetries says.
type Guard struct {
	client redis.UniversalClient
}

// NewGuard returns a guard on client, which stays the caller's. It asks no server; a nil client panics. A
// [redis.Ring] is no fence when its shards change, because then the marks stay behind.
func NewGuard(client redis.UniversalClient) *Guard {
	if client == nil {
		panic("goredislock: NewGuard needs a client")
	}
	return &Guard{client: client}
}

// Check lets s touch the resource, or returns a *fence.StaleError. It is for the first touch of a resource that this
// guard does not read itself.
func (g *Guard) Check(ctx context.Context, resource string, s fence.Stamp) error {
	call, err := redislock.GuardCheck(resource, s)
	if err != nil {
		return err
	}
	_, err = g.run(ctx, call)
	return err
}

// Get returns the string at key, and whether there is one, if s may touch it. The resource is the key. Use it for the
// first read too: a read outside of the fence does not register the stamp, so an overtaken holder may still write after
// it.
func (g *Guard) Get(ctx context.Context, key string, s fence.Stamp) (value string, found bool, err error) {
	call, err := redislock.GuardGet(key, s)
	if err != nil {
		return "", false, err
	}
	reply, err := g.run(ctx, call)
	value, found = reply.(string)
	return value, found, err
}

// Set writes the string at key, without a time to live, if s may touch it. The resource is the key.
func (g *Guard) Set(ctx context.Context, key, value string, s fence.Stamp) error {
	call, err := redislock.GuardSet(key, value, s)
	if err != nil {
		return err
	}
	_, err = g.run(ctx, call)
	return err
}

// Eval runs a Lua script on keys if s may touch resource, and returns what the script returns, in the types of
// [redis.Cmd], or nil. [redislock.Guard.Eval] says what a script must keep to.
func (g *Guard) Eval(
	ctx context.Context, script, resource string, s fence.Stamp, keys, args []string,
) (any, error) {
	call, err := redislock.GuardEval(script, resource, s, keys, args)
	if err != nil {
		return nil, err
	}
	return g.run(ctx, call)
}

// Forget removes the marks of a resource that is gone for good. If the resource were used again, an old holder could
// pass.
func (g *Guard) Forget(ctx context.Context, resource string) error {
	return g.client.Del(ctx, redislock.GuardKey(resource)).Err()
}

// run sends a call by the script's name, and by its source if the server does not know it. NOSCRIPT says that nothing
// has run, so this one repetition is safe.
func (g *Guard) run(ctx context.Context, call *redislock.GuardCall) (any, error) {
	if _, sharded := g.client.(*redis.ClusterClient); sharded {
		if err := call.InOneSlot(); err != nil {
			return nil, err
		}
	}
	reply, err := g.send(ctx, call, false)
	if redis.HasErrorPrefix(err, "NOSCRIPT") {
		reply, err = g.send(ctx, call, true)
	}
	if errors.Is(err, redis.Nil) {
		return nil, nil //nolint:nilnil // which is what the script has answered
	}
	// Without what hooks of the client wrap around it: Explain reads the text.
	if answer, is := asAnswer(err); is {
		err = answer
	}
	return reply, call.Explain(err)
}

// send sends a call once.
func (g *Guard) send(ctx context.Context, call *redislock.GuardCall, source bool) (any, error) {
	cmd := command(ctx, &call.Call, source)
	if err := g.client.Process(ctx, cmd); err != nil {
		return nil, err
	}
	return cmd.Result()
}
