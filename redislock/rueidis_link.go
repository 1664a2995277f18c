package redislock

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/rueidis"
)

const (
	// rueidisWindow is how many commands may be under way on a link. rueidis keeps them in a ring, and when the ring is
	// full (1024 unless the client's RingScaleEachConn says otherwise) a call waits without looking at its context. So the
	// link never fills it.
	rueidisWindow = 512

	// rueidisGreeting bounds the first commands on a new connection.
	rueidisGreeting = 5 * time.Second

	// rueidisSilence is how long a server that owes answers may say nothing before something asks whether another one has
	// taken its place.
	rueidisSilence = 500 * time.Millisecond
)

var (
	errBroken = errors.New("the connection broke")
	errUnsent = errors.New("the connection broke before the command was sent")
)

// rueidisLink is one connection to one server: calls go over it and pushes come over it, from when it is made until it
// breaks. It is never mended; its node makes a new one.
type rueidisLink struct {
	node   *rueidisNode
	number Link // 0 with RESP2, where rueidis opens a second connection for the pushes
	client rueidis.DedicatedClient
	build  rueidis.Builder
	peers  []string     // the servers that rueidis knew before it made the connection, if it is not a Cluster
	hooks  <-chan error // rueidis closes it when the connection has ended

	window chan struct{} // holds one for each command under way
	owed   atomic.Int64  // of those, the ones for whose answers nobody waits any more

	once   sync.Once
	failed chan struct{} // closed by fail
	err    error         // why; set before that

	// order guards silent. Who tells the handler something holds it, so that nothing is told after silence.
	order  sync.Mutex
	silent bool

	subscribing   sync.Mutex                      // guards subscriptions; nothing is waited for under it
	subscriptions map[string]*rueidisSubscription // by channel: those that Listen asked for
}

func newRueidisLink(n *rueidisNode, client rueidis.DedicatedClient, peers []string) *rueidisLink {
	return &rueidisLink{
		node: n, client: client, build: client.B(), peers: peers,
		window: make(chan struct{}, rueidisWindow), failed: make(chan struct{}),
		subscriptions: make(map[string]*rueidisSubscription),
	}
}

// open greets the server and subscribes.
func (l *rueidisLink) open(ctx context.Context) error {
	// A context that has an end but no deadline makes rueidis start the goroutines of the connection with the first
	// command. Without them the second of two commands would wait for the first, and not look at its own context.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(rueidisGreeting, cancel).Stop()
	g, err := greet(ctx, l.client)
	if err != nil {
		return err
	}
	if g.replica && !l.node.conn.cluster { // a replica in a Cluster sends its callers on
		return errReplica
	}
	if g.resp3 {
		l.number = Link(l.node.conn.links.Add(1))
	}
	l.hooks = l.client.SetPubSubHooks(rueidis.PubSubHooks{OnMessage: l.pushed, OnSubscription: l.subscribed})
	return l.client.Do(ctx, l.build.Subscribe().Channel(l.node.conn.channel).Build()).Error()
}

// pushed takes a message, in the goroutine that reads the connection.
func (l *rueidisLink) pushed(m rueidis.PubSubMessage) {
	l.order.Lock()
	defer l.order.Unlock()
	if !l.silent {
		l.node.conn.handler.Pushed(l.number, m.Channel, m.Message)
	}
}

// silence ends the calls of the handler: a link that was dropped pushes nothing.
func (l *rueidisLink) silence() {
	l.order.Lock()
	defer l.order.Unlock()
	l.silent = true
}

// fail gives the link up, so that the next call finds another.
func (l *rueidisLink) fail(err error) {
	l.once.Do(func() {
		l.err = err
		l.node.link.CompareAndSwap(l, nil)
		close(l.failed)
	})
}

// do runs one command. An error that says that nothing was sent is a *RefusedError or errUnsent.
func (l *rueidisLink) do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	if err := l.enter(ctx); err != nil {
		return rueidis.NewErrorResult(err)
	}
	r := l.client.Do(ctx, command)
	l.leave(ctx, r.NonRedisError())
	return r
}

// doMulti runs commands that nobody else's come between.
func (l *rueidisLink) doMulti(ctx context.Context, commands []rueidis.Completed) []rueidis.RedisResult {
	if err := l.enter(ctx); err != nil {
		return failures(len(commands), err)
	}
	rs := l.client.DoMulti(ctx, commands...)
	l.leave(ctx, rs[len(rs)-1].NonRedisError())
	return rs
}

// failures returns the results of n commands that have failed together.
func failures(n int, err error) []rueidis.RedisResult {
	return slices.Repeat([]rueidis.RedisResult{rueidis.NewErrorResult(err)}, n)
}

// enter waits until a command may be sent.
func (l *rueidisLink) enter(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return &RefusedError{err} // rueidis would not send it either, but not say so
	}
	select {
	case l.window <- struct{}{}:
		return nil
	default:
	}
	select {
	case l.window <- struct{}{}:
		return nil
	case <-l.failed:
		return errUnsent
	case <-ctx.Done():
		return &RefusedError{ctx.Err()}
	}
}

// leave is called with the result of what was sent.
func (l *rueidisLink) leave(ctx context.Context, err error) {
	switch {
	case err == nil:
		<-l.window
	case ctx.Err() == nil:
		l.fail(err)
	default:
		l.owe()
	}
}

// owe says that a command will still be answered, but nobody waits for it. Its place in the window must not be taken
// before, so something asks when that is: a PING, which is answered after it.
func (l *rueidisLink) owe() {
	if l.owed.Add(1) == 1 {
		l.node.conn.spawn(l.settle) // ends with the link
	}
}

// settle frees the places of the commands that were given up, once they are answered.
func (l *rueidisLink) settle() {
	settled := make(chan struct{})
	defer close(settled)
	l.node.conn.spawn(func() { l.suspect(settled) }) // ends when this does
	for {
		n := l.owed.Load()
		if err := l.client.Do(l.node.conn.base, l.build.Ping().Build()).NonRedisError(); err != nil {
			l.fail(err)
			return
		}
		for range n {
			<-l.window
		}
		if l.owed.Add(-n) == 0 {
			return
		}
	}
}

// suspect gives the link up if another server has taken the place of this one while it was silent. To a server that
// hangs, or that the network hides, a connection may stay open for long.
func (l *rueidisLink) suspect(settled <-chan struct{}) {
	c := l.node.conn
	silence := time.NewTicker(rueidisSilence)
	defer silence.Stop()
	for {
		select {
		case <-silence.C:
		case <-settled: // it has answered, or the link has broken
			return
		}
		replaced := false
		if c.cluster {
			replaced = c.refresh(c.base) == nil && !c.owns(l.node)
		} else {
			replaced = !slices.Equal(l.peers, c.peers())
		}
		if replaced {
			l.fail(errHangs)
		}
	}
}

// greeting is what a server says of itself.
type greeting struct {
	resp3   bool
	replica bool
	major   int // of its version; 0 if unknown
}

// greet asks a server about itself and about the connection. One that does not know HELLO is taken for an old primary.
func greet(ctx context.Context, client rueidis.CommandClient) (greeting, error) {
	r := client.Do(ctx, client.B().Arbitrary("HELLO").Build())
	said, err := r.AsMap()
	if r.NonRedisError() != nil {
		return greeting{}, err
	}
	if err != nil {
		if judge(err, "").verdict == unknown {
			return greeting{}, nil
		}
		return greeting{}, err
	}
	return readGreeting(said), nil
}

// readGreeting reads the answer to HELLO.
func readGreeting(said map[string]rueidis.RedisMessage) (g greeting) {
	for name, value := range said {
		switch name {
		case "proto":
			n, err := value.AsInt64()
			g.resp3 = err == nil && n >= 3
		case "role":
			role, err := value.ToString()
			g.replica = g.replica || err == nil && role != "master"
		case "mode": // a sentinel tells no role
			mode, err := value.ToString()
			g.replica = g.replica || err == nil && mode == "sentinel"
		case "version":
			version, err := value.ToString()
			major, _, _ := strings.Cut(version, ".")
			if n, bad := strconv.Atoi(major); err == nil && bad == nil {
				g.major = n
			}
		}
	}
	return g
}
