package conn

import (
	"context"
	"time"
)

// Conn is what the driver needs of a Redis client: scripts, pipelines of scripts, subscriptions, and a few commands for
// operators. redislock.New makes one of a rueidis client; package goredislock makes one of a go-redis client. It is
// safe for concurrent use.
//
// Every method returns within 50 ms after its context has ended, also when a server hangs.
type Conn interface {
	// Start is called once, before everything else. From then on, every connection over which calls run is subscribed
	// to channel, the driver's own, by SUBSCRIBE, before the first call runs on it, or else one connection beside them
	// is. What comes over it goes to h. After a broken connection the subscription is made anew without being asked,
	// and h is told.
	Start(ctx context.Context, channel string, h Handler) error

	// Sharded reports whether this is a Cluster, so that pushes go by SPUBLISH (Redis 7 and later; see [Conn.Listen]).
	// It is constant after Start.
	Sharded() bool

	// Call runs one script on the node that owns its keys. It is sent once: a call whose outcome is unknown is not
	// repeated, but one that a server refused before it ran (NOSCRIPT, MOVED, ASK, TRYAGAIN, LOADING) is.
	Call(ctx context.Context, c *Call) Reply

	// Batch runs the calls, one pipeline for each node, and calls done exactly once for each, from any goroutine, as
	// the answers come: a slow node does not delay the others. It returns after the last.
	Batch(ctx context.Context, calls []Call, done func(i int, r Reply))

	// Listen makes sure that what SPUBLISH sends to channel in slot arrives over the connection that runs the calls for
	// slot. It returns when the server has confirmed that, at once if it has before. When the subscription ends by
	// itself, because the slot moved or the connection broke, h is told that the link dropped, and the next Listen
	// subscribes again. It is called only if Sharded.
	Listen(ctx context.Context, slot uint16, channel string) error

	// Unlisten ends what Listen began. It does not wait.
	Unlisten(slot uint16, channel string)

	// Nodes returns the primaries that are reachable, for operators: one, or all of a Cluster.
	Nodes(ctx context.Context) ([]Node, error)

	// Close ends the subscriptions and gives the connections back. It closes the client only if the Conn has made it.
	Close() error
}

// Handler is told what comes without being asked for. Its methods do not block, and are called in the order of arrival
// for each link: a push, and a reply that came before it on the same link, are seen in that order.
type Handler interface {
	// Pushed takes a message to a channel. The link is 0 if the connection is not one over which replies come.
	Pushed(l Link, channel, message string)
	// Dropped says that messages may have been lost: the connection broke, or a subscription ended. The link, which may
	// be 0, is never used again unless it is 0. It is called once more when the subscription has been made anew, so
	// that what was missed in between is asked for.
	Dropped(l Link)
}

// Link names one connection to one server, from when it is made until it breaks. Numbers are not used again. 0 stands
// for connections that cannot be told apart: the instants of replies and pushes over them cannot be compared.
type Link uint64

// Node is one server, as operators talk to it.
type Node interface {
	// Addr is the host:port under which the client knows it.
	Addr() string
	// Do runs one command on this node and returns its answer: string, int64, nil, or []any of these; maps come as a
	// list of keys and values.
	Do(ctx context.Context, args ...string) (any, error)
}

// Awaiter is a Conn that makes use of the goroutines that wait for a push.
type Awaiter interface {
	Conn

	// Await returns true when there is something in news, which it takes, and false at the instant until. Meanwhile the
	// goroutine may read the connection over which the calls for slot run, so that a push that is for it need not wake
	// another one. So the Handler sends to news without blocking. What others send is seen as well, but perhaps only at
	// until, unless they are Conn.Close or follow a Dropped.
	//
	// The error is that of ctx, or driver.ErrClosed after Close. If the connection breaks the wait goes on without it.
	Await(ctx context.Context, slot uint16, news <-chan struct{}, until time.Time) (bool, error)
}

// Attentive is a Conn that sees a push late, by some 25 ms, when nobody waits for one, unless it
// is told that it must not.
type Attentive interface {
	Conn

	// Attend says whether messages to the driver's own channel have to be seen at once from now on, whoever waits or
	// does not. It does not block. Calls may take a little longer meanwhile.
	Attend(on bool)
}

// Failover is what a Conn may tell about its servers besides, for the texts of errors.
type Failover interface {
	// FailsOver reports whether another server soon takes the place of one that is away, or is a replica by now.
	FailsOver() bool
	// Addrs are the servers' addresses, as the client knows them.
	Addrs() []string
}

// FailsOver reports whether the servers of a Conn replace each other: those of a Cluster, and others if they say so.
func FailsOver(c Conn) bool {
	f, tells := c.(Failover)
	return c.Sharded() || tells && f.FailsOver()
}
