// The fence for data in Redis, over a rueidis client. guard_call.go builds the script and reads its refusal;
// goredislock has the same over go-redis. Locks do not use it.

package redislock

import (
	"context"

	"github.com/interlock-go/interlock/fence"
	"github.com/redis/rueidis"
)

// Guard is a fence for data in Redis (see package [fence]): it checks a stamp, and reads or writes the data, in one
// script. It is made by [NewGuard], keeps nothing itself, and is safe for concurrent use; all programs with the
// same server are one fence.
//
// For each resource there is a hash with the two marks, of some 150 bytes, under "interlock:fence:{TAG}:RESOURCE" in
// the slot of the resource's own key (wire.md says how TAG is found). It has no time to live; delete it with
// [Guard.Forget] when the resource is gone for good.
//
// # What it promises
//
// What package fence says, as long as Redis keeps the marks. They are beside the data: a failover or a restart that
// loses the last writes loses marks and data of the same moments, and then a holder that was overtaken just before may
// pass once more. A guard does not wait for replicas ([Options.Replicas] is an option of locks): it is as durable as
// any write of the client's. Eviction could remove the marks alone, so the server must not evict (maxmemory-policy
// noeviction). A write whose mark was raised but which failed in the middle of a script stays half done: Redis does not
// roll back.
//
// A user of its own needs the rights +eval +evalsha +hmget +hset, for Get and Set +get and +set, for Forget +del, those
// of the caller's scripts, and the keys of the data beside ~interlock:fence:*.
//
// Every method costs one round trip, and one more when the server does not know the script. An error that is no
// *fence.StaleError is the server's or the network's; after the latter it is unknown whether the script
// ran. It is not sent again.
type Guard struct {
	client rueidis.Client
}

// NewGuard returns a guard on client, which stays the caller's. It asks no server; a nil client panics.
func NewGuard(client rueidis.Client) *Guard {
	if client == nil {
		panic("redislock: NewGuard needs a client")
	}
	return &Guard{client: client}
}

// Check lets s touch the resource, or returns a *fence.StaleError. It is for the first touch of a resource that this
// guard does not read itself.
func (g *Guard) Check(ctx context.Context, resource string, s fence.Stamp) error {
	call, err := GuardCheck(resource, s)
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
	call, err := GuardGet(key, s)
	if err != nil {
		return "", false, err
	}
	reply, err := g.run(ctx, call)
	if err != nil || reply.IsNil() {
		return "", false, err
	}
	value, err = reply.ToString()
	return value, err == nil, err
}

// Set writes the string at key, without a time to live, if s may touch it. The resource is the key.
func (g *Guard) Set(ctx context.Context, key, value string, s fence.Stamp) error {
	call, err := GuardSet(key, value, s)
	if err != nil {
		return err
	}
	_, err = g.run(ctx, call)
	return err
}

// Eval runs a Lua script on keys if s may touch resource, and returns what the script does. The script sees KEYS
// and ARGV as with EVAL; the numbers of lines in its errors are larger by the length of guard.lua. What it is
// about is named by resource, which every program has to name in the same way: usually the main key. In a Cluster
// all keys must be in the slot of resource, so give both the same hash tag. A script that is called with a
// reader's stamp must only read.
func (g *Guard) Eval(
	ctx context.Context, script, resource string, s fence.Stamp, keys, args []string,
) (rueidis.RedisMessage, error) {
	call, err := GuardEval(script, resource, s, keys, args)
	if err != nil {
		return rueidis.RedisMessage{}, err
	}
	return g.run(ctx, call)
}

// Forget removes the marks of a resource that is gone for good. If the resource were used again, an old holder could
// pass.
func (g *Guard) Forget(ctx context.Context, resource string) error {
	return g.client.Do(ctx, g.client.B().Del().Key(GuardKey(resource)).Build()).Error()
}

// run runs a call by its name, and by its source if the server does not know it. NOSCRIPT says that nothing has run, so
// this one repetition is safe; no other error is retried.
func (g *Guard) run(ctx context.Context, call *GuardCall) (rueidis.RedisMessage, error) {
	// A Cluster would refuse keys of several slots with an error that does not name the key.
	if g.client.Mode() == rueidis.ClientModeCluster {
		if err := call.InOneSlot(); err != nil {
			return rueidis.RedisMessage{}, err
		}
	}
	numbered := int64(len(call.Keys))
	reply, err := g.client.Do(ctx, g.client.B().Evalsha().Sha1(call.Script.SHA()).Numkeys(numbered).
		Key(call.Keys...).Arg(call.Args...).Build()).ToMessage()
	if refused, is := rueidis.IsRedisErr(err); is && refused.IsNoScript() {
		reply, err = g.client.Do(ctx, g.client.B().Eval().Script(call.Script.Source()).Numkeys(numbered).
			Key(call.Keys...).Arg(call.Args...).Build()).ToMessage()
	}
	if rueidis.IsRedisNil(err) {
		return reply, nil
	}
	return reply, call.Explain(err)
}
