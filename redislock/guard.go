// The fence for data in Redis, over a rueidis client; goredislock has the same over go-redis. Locks do not use it.

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

// The calls of a Guard, without a client library: this package and goredislock send them. guard.lua, in front of each
// script, checks the stamp.

// GuardCall is one script that checks a stamp and then does something, ready to be sent. It is the seam for guards over
// client libraries other than rueidis: goredislock.NewGuard is one. All guards that send these calls to one server are
// one fence.
//
// The sender runs Script with Keys and Args on the node that has Keys[0], by EVALSHA and, if the server answers
// NOSCRIPT, by EVAL. It must not send a call again whose outcome is unknown: what the script of [GuardEval] does would
// be done twice.
type GuardCall struct {
	conn.Call

	resource string
	stamp    fence.Stamp
}

//go:embed guard.lua
var guardPrelude string

// Each script is the prelude and one command, so the check and the access are one atomic step.
var (
	guardTouch = conn.NewScript(guardPrelude)
	guardGet   = conn.NewScript(guardPrelude + `return redis.call('GET', KEYS[1])`)
	guardSet   = conn.NewScript(guardPrelude + `return redis.call('SET', KEYS[1], ARGV[1])`)
)

// errReaderWrites is for what can only be a mistake.
var errReaderWrites = errors.New("the stamp is a reader's, which must not write")

// GuardCheck is the call of [Guard.Check]. Its answer means nothing.
func GuardCheck(resource string, s fence.Stamp) (*GuardCall, error) {
	return newGuardCall(guardTouch, resource, s, nil, nil)
}

// GuardGet is the call of [Guard.Get]. It answers as GET does.
func GuardGet(key string, s fence.Stamp) (*GuardCall, error) {
	return newGuardCall(guardGet, key, s, []string{key}, nil)
}

// GuardSet is the call of [Guard.Set]. It answers as SET does. A reader's stamp is an error.
func GuardSet(key, value string, s fence.Stamp) (*GuardCall, error) {
	if s.Shared {
		return nil, fmt.Errorf("redislock: guard %q: %w", key, errReaderWrites)
	}
	return newGuardCall(guardSet, key, s, []string{key}, []string{value})
}

// GuardEval is the call of [Guard.Eval]. It answers what the script returns.
func GuardEval(script, resource string, s fence.Stamp, keys, args []string) (*GuardCall, error) {
	return newGuardCall(conn.NewScript(guardPrelude+script), resource, s, keys, args)
}

// newGuardCall refuses names and stamps that make no sense. An empty guard in memory has the same rules, and says what
// is wrong.
func newGuardCall(script *conn.Script, resource string, s fence.Stamp, keys, args []string) (*GuardCall, error) {
	if err := new(fence.MemoryGuard).Check(resource, s); err != nil {
		return nil, err
	}
	role := "w"
	if s.Shared {
		role = "r"
	}
	return &GuardCall{
		Call: conn.Call{
			Script: script,
			Slot:   conn.SlotOf(resource),
			Keys:   append([]string{GuardKey(resource)}, keys...),
			// The script compares tokens as texts, so they have twenty digits. The nonce comes back in the text of an
			// error, where spaces separate words, so it is escaped.
			Args: append([]string{fmt.Sprintf("%020d", s.Token), url.QueryEscape(s.Nonce), role}, args...),
		},
		resource: resource, stamp: s,
	}, nil
}

// InOneSlot returns an error if a Cluster would refuse the call because its keys are in several slots.
func (c *GuardCall) InOneSlot() error {
	for _, key := range c.Keys {
		if conn.SlotOf(key) != c.Slot {
			return fmt.Errorf(
				"redislock: guard %q: the key %q is in another slot of the Cluster; give both the same hash tag",
				c.resource, key)
		}
	}
	return nil
}

// Explain returns the error of a guard for the error with which the call ended: a *fence.StaleError if the server
// refused the stamp, and else an error that wraps err. For nil it returns nil.
func (c *GuardCall) Explain(err error) error {
	if err == nil {
		return nil
	}
	if seen, is := guardRefusal(err.Error()); is {
		return &fence.StaleError{Resource: c.resource, Have: c.stamp, Seen: seen}
	}
	return fmt.Errorf("redislock: guard %q: %w", c.resource, err)
}

// GuardKey is the key at which guards keep the marks of a resource: it is in the slot of the resource.
func GuardKey(resource string) string {
	return defaultPrefix + "fence:{" + conn.Tag(conn.SlotOf(resource)) + "}:" + resource
}

// guardRefusal reads the error by which guard.lua refuses: FENCED ROLE TOKEN NONCE, of the newest stamp that the
// resource has seen.
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
