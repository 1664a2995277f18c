package redislock

import (
	"context"
	_ "embed" // guard.lua
	"errors"
	"fmt"
	"net/url"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/redislock/conn"
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
// pass once more. Eviction could remove the marks alone, so the server must not evict (maxmemory-policy noeviction). A
// write whose mark was raised but which failed in the middle of a script stays half done: Redis does not roll back.
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

//go:embed guard.lua
var guardPrelude string

var (
	guardTouch = rueidis.NewLuaScript(guardPrelude)
	guardGet   = rueidis.NewLuaScript(guardPrelude + `return redis.call('GET', KEYS[1])`)
	guardSet   = rueidis.NewLuaScript(guardPrelude + `return redis.call('SET', KEYS[1], ARGV[1])`)
)

// errReaderWrites is for what can only be a mistake.
var errReaderWrites = errors.New("the stamp is a reader's, which must not write")

// Check lets s touch the resource, or returns a *fence.StaleError. It is for the first touch of what
// is not read by this guard.
func (g *Guard) Check(ctx context.Context, resource string, s fence.Stamp) error {
	_, err := g.run(ctx, guardTouch, resource, s, nil, nil)
	return err
}

// Get returns the string at key, and whether there is one, if s may touch it. The resource is the key. Use it for the
// first touch, too: reading without it is what a fence cannot make good.
func (g *Guard) Get(ctx context.Context, key string, s fence.Stamp) (value string, found bool, err error) {
	reply, err := g.run(ctx, guardGet, key, s, []string{key}, nil)
	if err != nil || reply.IsNil() {
		return "", false, err
	}
	value, err = reply.ToString()
	return value, err == nil, err
}

// Set writes the string at key, without a time to live, if s may touch it. The resource is the key.
func (g *Guard) Set(ctx context.Context, key, value string, s fence.Stamp) error {
	if s.Shared {
		return fmt.Errorf("redislock: guard %q: %w", key, errReaderWrites)
	}
	_, err := g.run(ctx, guardSet, key, s, []string{key}, []string{value})
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
	return g.run(ctx, rueidis.NewLuaScript(guardPrelude+script), resource, s, keys, args)
}

// Forget removes what is known of a resource that is gone for good. Were it used again, an old holder could pass.
func (g *Guard) Forget(ctx context.Context, resource string) error {
	return g.client.Do(ctx, g.client.B().Del().Key(guardKey(resource)).Build()).Error()
}

// run runs a script that begins with the prelude.
func (g *Guard) run(
	ctx context.Context, script *rueidis.Lua, resource string, s fence.Stamp, keys, args []string,
) (rueidis.RedisMessage, error) {
	if err := g.check(resource, s, keys); err != nil {
		return rueidis.RedisMessage{}, err
	}
	role := "w"
	if s.Shared {
		role = "r"
	}
	reply, err := script.Exec(ctx, g.client, append([]string{guardKey(resource)}, keys...),
		append([]string{fmt.Sprintf("%020d", s.Token), url.QueryEscape(s.Nonce), role}, args...)).ToMessage()
	if rueidis.IsRedisNil(err) {
		return reply, nil
	}
	if refused, is := rueidis.IsRedisErr(err); is {
		if seen, is := guardRefusal(refused.Error()); is {
			return rueidis.RedisMessage{}, &fence.StaleError{Resource: resource, Have: s, Seen: seen}
		}
	}
	if err != nil {
		err = fmt.Errorf("redislock: guard %q: %w", resource, err)
	}
	return reply, err
}

// check refuses what makes no sense. A guard in memory says what is wrong with a name or a stamp.
func (g *Guard) check(resource string, s fence.Stamp, keys []string) error {
	if err := new(fence.MemoryGuard).Check(resource, s); err != nil {
		return err
	}
	if g.client.Mode() != rueidis.ClientModeCluster {
		return nil
	}
	for _, key := range keys {
		if conn.SlotOf(key) != conn.SlotOf(resource) {
			return fmt.Errorf(
				"redislock: guard %q: the key %q is in another slot of the Cluster; give both the same hash tag",
				resource, key)
		}
	}
	return nil
}

// guardKey is where the marks of a resource are: in its slot.
func guardKey(resource string) string {
	return defaultPrefix + "fence:{" + conn.Tag(conn.SlotOf(resource)) + "}:" + resource
}

// guardRefusal reads the error by which guard.lua refuses.
func guardRefusal(message string) (seen fence.Stamp, is bool) {
	words := strings.Split(message, " ")
	if len(words) != 4 || words[0] != "FENCED" {
		return fence.Stamp{}, false
	}
	token, err := strconv.ParseUint(words[2], 10, 64)
	if err != nil {
		return fence.Stamp{}, false
	}
	nonce, err := url.QueryUnescape(words[3])
	return fence.Stamp{Token: token, Nonce: nonce, Shared: words[1] == "r"}, err == nil
}
