// The Driver: its options, construction, traits and Close. The operations are in files of their own, acquire.go first;
// entry.go has what the driver keeps of each request, notices.go what it hears without having asked.

package redislock

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/rueidisconn"
	"github.com/interlock-go/interlock/redislock/internal/word"
	"github.com/redis/rueidis"
)

var (
	_ driver.Driver    = (*Driver)(nil)
	_ driver.Renewer   = (*Driver)(nil)
	_ driver.Requeuer  = (*Driver)(nil)
	_ driver.Converter = (*Driver)(nil)
	_ driver.Inspector = (*Driver)(nil)
	_ driver.Breaker   = (*Driver)(nil)
	_ driver.Diagnoser = (*Driver)(nil)
)

// kinds are those that Acquire accepts. Latches and conditions have calls of their own.
var kinds = []driver.Kind{driver.KindMutex, driver.KindRWMutex, driver.KindSemaphore, driver.KindElection}

// Driver is one client's access to the locks of a Redis deployment. It is safe for concurrent use and must not be
// copied. Its zero value is not usable; [New], [Start], [Connect], [NewConn] and [StartConn] make one.
type Driver struct {
	conn    Conn
	opts    Options
	names   names
	process string // a random word: it names this driver among all, and so its channel
	channel string // where the server pushes grants, breaks and notices for this driver

	closing chan struct{} // closed by Close, under mu; every wait selects on it
	close   sync.Once

	mu      sync.Mutex        // guards what follows; nothing blocks under it
	entries map[string]*entry // by request ID: acquisitions under way, and holds
	// client is the name that operators see, of the latest request. A renewal does not carry it.
	client string
	// marks: some request was marked by markOf. Until then renewals need not look for marked holds.
	marks  bool
	urgent int        // how many entries are urgent; see count
	gone   tombstones // the latest requests that are over
	// unsent are IDs of requests that are still to be undone although nothing of them was sent: 1024 at most. See
	// leave.
	unsent  map[string]struct{}
	watches map[string]map[*watch]struct{} // by KIND:NAME; one key may have several
	slots   slotsInUse                     // where we listen, in a Cluster

	reconnections reconnections

	// presence says that this process is alive, on behalf of the waiters in it. It has a mutex of its own.
	presence presence
	// latest are the releases that a failover may have forgotten. It has a mutex of its own, too.
	latest latestReleases
}

// startTime is how long New waits for a server that hangs.
const startTime = 5 * time.Second

// New returns a driver over client, which may be of any topology. It subscribes to a channel of its own and checks the
// server's set-up as opts say. It blocks for at most 5 seconds; [Start] takes a context instead. Close leaves the
// client open. A nil opts means the defaults.
func New(client rueidis.Client, opts *Options) (*Driver, error) {
	//nolint:forbidigo // as sql.OpenDB, it takes none
	ctx, cancel := context.WithTimeout(context.Background(), startTime)
	defer cancel()
	return Start(ctx, client, opts)
}

// Start is New with a context that bounds the start alone. An error that matches ctx's says that the server has not
// answered by then.
func Start(ctx context.Context, client rueidis.Client, opts *Options) (*Driver, error) {
	if client == nil {
		return nil, errors.New("redis: the client is nil: make one with rueidis.NewClient")
	}
	return start(ctx, rueidisconn.New(client, false), opts)
}

// Conn returns the driver's way to the servers, for packages that keep something of their own beside its locks. Its
// Start has been called. Close closes it too, so the caller must not.
func (d *Driver) Conn() Conn { return d.conn }

// KeyOf returns the key of a lock.
func (d *Driver) KeyOf(lock driver.Key) string {
	name, _ := d.names.lock(lock)
	return name
}

// Judge turns an error of Conn into the error that an operation of this driver would return, for an operation that is
// one part of a larger one. It never says that nothing has happened, because the other parts may have. op is "acquire",
// "renew" or "release".
func (d *Driver) Judge(ctx context.Context, op string, lock driver.Key, err error) error {
	return d.callError(ctx, op, lock, err, true)
}

// ended returns how ctx has ended, or nil. A read with the context's deadline on its socket can return before ctx's own
// timer has run, so the deadline is compared too.
func ended(ctx context.Context) error {
	if end, has := ctx.Deadline(); ctx.Err() == nil && has && !time.Now().Before(end) {
		return context.DeadlineExceeded
	}
	return ctx.Err()
}

// NewConn is New over another client library. Unlike New it sets no time limit of its own.
func NewConn(conn Conn, opts *Options) (*Driver, error) {
	return start(context.Background(), conn, opts) //nolint:forbidigo // see New
}

// StartConn is NewConn for as long as ctx lasts: when it ends before the server has answered, it returns ctx's error.
func StartConn(ctx context.Context, conn Conn, opts *Options) (*Driver, error) {
	return start(ctx, conn, opts)
}

// start makes a driver over conn. If it fails it closes conn, in the background when ctx has ended. The check comes
// after conn.Start, whose connections it needs.
func start(ctx context.Context, conn Conn, opts *Options) (*Driver, error) {
	if conn == nil {
		return nil, errors.New("redis: the connection is nil")
	}
	o, err := opts.withDefaults()
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	d := &Driver{
		conn: conn, opts: o, names: names{o.Prefix}, process: strings.ToLower(rand.Text()),
		closing: make(chan struct{}),
		entries: make(map[string]*entry),
	}
	d.channel = d.names.channel(d.process)
	// The listener is passed before anything is sent, so no push can come to nobody.
	err = conn.Start(ctx, d.channel, (*listener)(d))
	if err == nil {
		err = d.checkAtStart(ctx)
	}
	if err != nil {
		err = d.failed(err)
		// Closing may take longer than ctx lasts, and nothing is held yet.
		enginekit.CloseWithin(ctx, conn.Close)
		return nil, err
	}
	return d, nil
}

// Traits describes the engine.
func (d *Driver) Traits() driver.Traits {
	return driver.Traits{
		Engine: "redis", Lifetime: driver.Leases, QueueTimeout: mostQueued, Resumes: true,
		Kinds: append(slices.Clone(kinds), driver.KindLatch, driver.KindCond),
	}
}

// Close ends all waits with driver.ErrClosed and gives the connections back. Holds are not released: they end with
// their leases.
func (d *Driver) Close() error {
	var err error
	d.close.Do(func() {
		d.mu.Lock()
		clear(d.entries) // nobody is told anything any more
		// Under mu, so that enter and keep cannot register anything after the entries were cleared.
		close(d.closing)
		clear(d.reconnections.heed)
		if d.reconnections.timer != nil {
			d.reconnections.timer.Stop()
		}
		d.mu.Unlock()
		d.presence.stop()
		d.latest.stop()
		err = d.conn.Close()
	})
	return err
}

// isClosed may be called with or without Driver.mu.
func (d *Driver) isClosed() bool {
	select {
	case <-d.closing:
		return true
	default:
		return false
	}
}

// The options of a driver. Its constructors check them before they dial; url.go reads them from a URL.

// Options configures a driver. The zero value and nil mean the defaults. New copies them, so later changes have no
// effect.
type Options struct {
	// Prefix begins every key and channel, so that several applications can share a server. All clients of one set of
	// locks need the same: with another prefix they use other locks. It has at most 128 bytes, and no spaces, control
	// characters or braces. The default is "interlock:".
	Prefix string

	// Replicas is how many replicas must acknowledge an acquisition or a renewal before it counts. Give the number of
	// all that are configured: with fewer, the promoted one may be the one that was not waited for. While fewer are
	// connected, no lock is granted and none is renewed. It costs a round trip from the primary to the replicas for
	// each acquisition and renewal, and one more after a wait. Each acquisition that runs at the same time needs a
	// connection. The default is 0: a failover can lose locks that were granted just before.
	Replicas int

	// ReplicaTimeout bounds the wait for Replicas, in the server. A grant that too few have acknowledged by then is
	// undone. Too short, and one slow replica fails acquisitions; too long, and a missing one delays the error. The
	// default is 1 s.
	ReplicaTimeout time.Duration

	// Check says what to do with the findings of the start-up check. The default is CheckWarn.
	Check CheckPolicy

	// Logger gets the findings of the start-up check. The default discards them.
	Logger *slog.Logger

	_ struct{}
}

// CheckPolicy says what New does with a server that is not set up for locks.
type CheckPolicy = enginekit.CheckPolicy

const (
	// CheckWarn logs findings.
	CheckWarn CheckPolicy = enginekit.CheckWarn
	// CheckRefuse makes New fail if a finding says that locks would not keep their guarantees.
	CheckRefuse CheckPolicy = enginekit.CheckRefuse
	// CheckNone asks nothing.
	CheckNone CheckPolicy = enginekit.CheckNone
)

const (
	defaultPrefix         = "interlock:"
	defaultReplicaTimeout = time.Second
	maxPrefix             = 128
	maxReplicas           = 100
)

// withDefaults returns a checked copy of o, with the defaults filled in. It accepts nil.
func (o *Options) withDefaults() (Options, error) {
	var c Options
	if o != nil {
		c = *o
	}
	c.Prefix = cmp.Or(c.Prefix, defaultPrefix)
	c.ReplicaTimeout = cmp.Or(c.ReplicaTimeout, defaultReplicaTimeout)
	if c.Logger == nil {
		c.Logger = slog.New(slog.DiscardHandler)
	}
	switch {
	case !word.Is(c.Prefix):
		return c, errors.New("redis: the prefix must not have spaces or control characters")
	case strings.ContainsAny(c.Prefix, "{}"):
		return c, errors.New("redis: the prefix must not have braces, which would put all locks into one slot")
	case len(c.Prefix) > maxPrefix:
		return c, fmt.Errorf("redis: the prefix has %d bytes; at most %d are allowed", len(c.Prefix), maxPrefix)
	case c.Replicas < 0 || c.Replicas > maxReplicas:
		return c, fmt.Errorf("redis: wait for 0 to %d replicas, not %d", maxReplicas, c.Replicas)
	case c.ReplicaTimeout < time.Millisecond:
		return c, fmt.Errorf("redis: the replica timeout must be at least 1 ms, not %v", c.ReplicaTimeout)
	case c.Check > CheckNone:
		return c, fmt.Errorf("redis: unknown check policy %d", c.Check)
	}
	return c, nil
}

// Aliases of package conn, below which this package knows nothing of connections (docs/rationale.md, Rooms of
// redislock), and which calls are made twice.

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

// What the portable layer is told of reconnections, so that it finds out at once what a server has forgotten.
// notices.go hears of them.

var _ driver.Reconnector = (*Driver)(nil)

// reconnectPause is the least time between two calls of those who heed reconnections. A server that breaks connections
// again and again, and a Cluster whose slots move, must not make a client renew all the time.
const reconnectPause = 250 * time.Millisecond

// reconnections is who heeds them, and when they were told last. Driver.mu guards it.
type reconnections struct {
	heed  map[*func()]struct{}
	told  time.Time
	timer *time.Timer // nil unless they are about to be told
}

// OnReconnect has f called when there is a new connection in place of one that has ended; see [driver.Reconnector].
func (d *Driver) OnReconnect(f func()) (stop func()) {
	d.mu.Lock()
	defer d.mu.Unlock()
	r := &d.reconnections
	if r.heed == nil {
		r.heed = make(map[*func()]struct{})
	}
	r.heed[&f] = struct{}{}
	return func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		delete(r.heed, &f)
	}
}

// reconnected has them told soon, in a goroutine of its own: whoever hears of a new connection must not block. The
// caller holds Driver.mu.
func (d *Driver) reconnected() {
	r := &d.reconnections
	if len(r.heed) == 0 || r.timer != nil || d.isClosed() {
		return
	}
	r.timer = time.AfterFunc(max(0, time.Until(r.told.Add(reconnectPause))), d.tellReconnected)
}

// tellReconnected tells them, without Driver.mu.
func (d *Driver) tellReconnected() {
	d.mu.Lock()
	r := &d.reconnections
	r.timer, r.told = nil, time.Now()
	all := make([]func(), 0, len(r.heed))
	for f := range r.heed {
		all = append(all, *f)
	}
	d.mu.Unlock()
	for _, f := range all {
		f()
	}
}
