// Aliases of package conn, below which this package knows nothing of connections (docs/rationale.md, Rooms of
// redislock), and which calls are made twice.

package redislock

import (
	"context"

	"github.com/interlock-go/interlock/redislock/conn"
)

// Package conn has what a driver shares with the client library below it, so that a Conn can be written without this
// package. The names that stood here before remain as aliases.
type (
	// Conn is [conn.Conn]: what the driver needs of a Redis client, which is scripts, pipelines of scripts,
	// subscriptions, and a few commands for operators. [New] makes one of a rueidis client, package goredislock one of
	// a go-redis client, and [NewConn] takes any other.
	Conn = conn.Conn
	// Handler is [conn.Handler]: what a Conn tells of messages and of connections that broke.
	Handler = conn.Handler
	// Link is [conn.Link]: the number of one connection to one server, from when it is made until it breaks.
	Link = conn.Link
	// Call is [conn.Call]: one run of a script, with its Script, Slot, Keys, Args, Replicas and ReplicaTimeout.
	Call = conn.Call
	// Reply is [conn.Reply]: the answer to a Call, with its Text, Link, Acked and Err.
	Reply = conn.Reply
	// Script is [conn.Script]: a Lua script and the name under which a server keeps it.
	Script = conn.Script
	// Node is [conn.Node]: one server, as operators talk to it.
	Node = conn.Node
	// Awaiter is [conn.Awaiter]: a Conn that makes use of the goroutines that wait for a push.
	Awaiter = conn.Awaiter
	// Attentive is [conn.Attentive]: a Conn that can be told to see pushes at once also when nobody waits for one.
	Attentive = conn.Attentive
	// Failover is [conn.Failover]: what a Conn may tell about its servers besides, for the texts of errors.
	Failover = conn.Failover
	// RefusedError is [conn.RefusedError]: the server refused a call before it ran, so nothing happened.
	RefusedError = conn.RefusedError
)

// NewScript returns a script for the Call method of a [Conn], for packages that build on this one. It answers with one
// string. It is [conn.NewScript].
func NewScript(source string) *Script { return conn.NewScript(source) }

// SlotOf returns the slot of a key, for a [Call] of a package that builds on this one. It is [conn.SlotOf].
func SlotOf(key string) uint16 { return conn.SlotOf(key) }

// CheckServer says what is wrong with a server for locks: it is a replica, a Sentinel, or a node of a Cluster to a
// client that is none for a Cluster. hello is its answer to HELLO as the Do method of a [Node] returns it. It is
// [conn.CheckServer].
func CheckServer(hello any, cluster bool) error { return conn.CheckServer(hello, cluster) }

// mayRepeat reports whether a call that ended with err may be made once more: its connection broke before the answer
// came. It is for calls that may run twice: a request with an ID, a renewal, a look.
func (d *Driver) mayRepeat(ctx context.Context, err error) bool {
	return conn.Broke(err) && ctx.Err() == nil && !d.isClosed()
}

// callTwice is Conn.Call for such a call; it repeats it once.
func (d *Driver) callTwice(ctx context.Context, c *Call) Reply {
	answer := d.conn.Call(ctx, c)
	if first := answer.Err; d.mayRepeat(ctx, first) {
		answer = d.conn.Call(ctx, c)
		answer.Err = ofBoth(first, answer.Err)
	}
	return answer
}

// ofBoth is the error of a call that was made twice. That the second one has not run says nothing of the first: whoever
// looks for a RefusedError must not find one.
func ofBoth(first, second error) error {
	if isRefusal(second) {
		return first
	}
	return second
}
