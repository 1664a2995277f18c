// The interface between the driver of the locks, above, and a client library, below. redislock calls it; rueidisconn
// and goredislock implement it.

package conn

import (
	"context"
	"time"
)

// Conn is what the driver needs of a Redis client: scripts, pipelines of scripts, subscriptions, and a few commands for
// operators. redislock.New makes one of a rueidis client, package goredislock one of a go-redis client. It is safe for
// concurrent use.
//
// Every method returns within 50 ms after its context has ended, even when a server hangs. What was under way may still
// run then.
type Conn interface {
	// Start is called once, before everything else. From then on every connection over which calls run is subscribed to
	// channel, the driver's own, by SUBSCRIBE, before the first call runs on it. A Conn that cannot do that subscribes
	// one connection beside them. What comes over it goes to h. After a broken connection the Conn subscribes anew by
	// itself, and tells h.
	Start(ctx context.Context, channel string, h Handler) error

	// Sharded reports whether this is a Cluster, so that pushes go by SPUBLISH (Redis 7 and later; see [Conn.Listen]).
	// It is constant after Start.
	Sharded() bool

	// Call runs one script on the node that owns its keys. A call whose outcome is unknown is not repeated. A call that
	// a server refused before it ran (NOSCRIPT, MOVED, ASK, TRYAGAIN, LOADING) is repeated, for about 2 seconds.
	Call(ctx context.Context, c *Call) Reply

	// Batch runs the calls, in pipelines for each node, and calls done exactly once for each call. done is called as
	// the answers come, from any goroutine, perhaps from several at once: a slow node does not delay the others. Batch
	// returns after the last.
	Batch(ctx context.Context, calls []Call, done func(i int, r Reply))

	// Listen makes sure that what SPUBLISH sends to channel in slot arrives over the connection that runs the calls for
	// slot. It blocks until the server has confirmed that, and returns at once if it had before. If the subscription
	// ends by itself, because the slot moved or the connection broke, h is told, and the next
	// Listen subscribes again. It is called only if Sharded.
	Listen(ctx context.Context, slot uint16, channel string) error

	// Unlisten ends what Listen began. It does not block; messages may still come for a while.
	Unlisten(slot uint16, channel string)

	// Nodes returns the primaries that are reachable, for operators: one, or all of a Cluster.
	Nodes(ctx context.Context) ([]Node, error)

	// Close ends the subscriptions and gives the connections back. It closes the client only if the Conn has made it.
	// Calls under way end with an error.
	Close() error
}

// Handler is told what comes without being asked for. Its methods must not block: they run in the goroutine that reads
// the connection. For each link they are called in the order of arrival, so a push and a reply that came before it are
// seen in that order.
type Handler interface {
	// Pushed handles a message to a channel. The link is 0 if no replies come over its connection.
	Pushed(l Link, channel, message string)
	// Dropped says that messages may have been lost, because the connection broke. The link is never used again, unless
	// it is 0. There may be no server yet that could be asked.
	Dropped(l Link)
	// Resumed follows a Dropped when the subscription has been made anew, or when there will be no other: what was
	// missed in between can be asked for. The server may be another one, or may have been restarted. Without a Dropped
	// it says that a subscription ended, and its connection did not.
	Resumed(l Link)
}

// Link names one connection to one server, from its making to its end. Numbers are not used again. 0 stands for
// connections that cannot be told apart: the instants of replies and pushes over them must not be compared.
type Link uint64

// Node is one server, as operators talk to it.
type Node interface {
	// Addr returns the host:port under which the client knows the server.
	Addr() string
	// Do runs one command on this node and returns its answer: string, int64, nil, or []any of these. Maps come as a
	// list of keys and values.
	Do(ctx context.Context, args ...string) (any, error)
}

// Awaiter is a Conn that can use goroutines that wait for a push to read its connection (docs/rationale.md, Our own
// connection).
type Awaiter interface {
	Conn

	// Await returns true when there is something in news, which it takes, and false at the instant until. Meanwhile the
	// goroutine may read the connection over which the calls for slot run, so that a push for it need not wake another
	// goroutine. Therefore the Handler must send to news without blocking. What other goroutines send to news is seen
	// too, but perhaps only at until, unless they are Conn.Close or follow a Dropped.
	//
	// The error is that of ctx, or driver.ErrClosed after Close. If the connection breaks, the wait goes on without it.
	Await(ctx context.Context, slot uint16, news <-chan struct{}, until time.Time) (bool, error)
}

// Attentive is a Conn that sees a push up to some 25 ms late when no goroutine waits for one, unless it is told to
// attend.
type Attentive interface {
	Conn

	// Attend says whether messages to the driver's own channel must be seen at once from now on, even if no goroutine
	// waits for one. It does not block. Calls may take a little longer while it is on.
	Attend(on bool)
}

// Failover is what a Conn may also tell about its servers, for the texts of errors.
type Failover interface {
	// FailsOver reports whether another server soon takes the place of one that is away, or has become a replica.
	FailsOver() bool
	// Addrs returns the servers' addresses, as the client knows them.
	Addrs() []string
}

// FailsOver reports whether the servers of a Conn replace each other: those of a Cluster do, and others if they say so.
func FailsOver(c Conn) bool {
	f, tells := c.(Failover)
	return c.Sharded() || tells && f.FailsOver()
}
