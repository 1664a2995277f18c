// The link: one connection that calls and pushes share. node.go makes and ends it, call.go and batch.go send over it,
// listen.go keeps its subscriptions.

package rueidisconn

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/resp"
	"github.com/redis/rueidis"
)

const (
	// mostUnderWay is how many commands may be under way on a link over rueidis. rueidis keeps them in a ring. When the
	// ring is full (1024 unless the client's RingScaleEachConn says otherwise), a call blocks without looking at its
	// context. The link never fills it.
	mostUnderWay = 512

	// greetingTime bounds the first commands on a new connection.
	greetingTime = 5 * time.Second

	// silenceTime is how long a server that owes answers may be silent before we find out whether another one has taken
	// its place.
	silenceTime = 500 * time.Millisecond
)

// link is one connection to one server: calls go over it and pushes come over it, from its making until it breaks. It
// is never repaired; its node makes a new one.
type link struct {
	node *node
	// number names the link in replies and pushes. It is 0 with RESP2, where rueidis opens a second connection for the
	// pushes.
	number conn.Link
	// peers are the servers that rueidis knew before it made the connection, outside of a Cluster; see suspect.
	peers []string

	carrier carrier
	resp    *resp.Conn      // the carrier, if it is one of package resp
	hooks   <-chan error    // otherwise: rueidis sends to it, or closes it, when the connection ends
	broken  <-chan struct{} // closed when resp has ended

	window chan struct{} // without resp: holds one element for each command under way
	owed   atomic.Int64  // how many of those nobody waits for any more

	once   sync.Once
	failed chan struct{} // closed by fail
	err    error         // the reason; set before failed is closed

	// order guards silent. Whoever tells the handler something holds it, so that nothing is told after silence: the
	// handler is promised that a dropped link pushes nothing.
	order  sync.Mutex
	silent bool

	subscribing   sync.Mutex               // guards subscriptions; nothing blocks under it
	subscriptions map[string]*subscription // by channel, those that Listen asked for
}

// newLink returns a link without a connection. open or openResp completes it before anybody else sees it.
func newLink(n *node, peers []string) *link {
	return &link{
		node: n, peers: peers, failed: make(chan struct{}), subscriptions: make(map[string]*subscription),
	}
}

// open greets the server over a connection of rueidis, checks that it suits, and subscribes to the driver's channel.
func (l *link) open(ctx context.Context, client rueidis.DedicatedClient) error {
	l.carrier, l.window = dedicated{client}, make(chan struct{}, mostUnderWay)
	// A context that can end but has no deadline makes rueidis start the goroutines of the connection with the first
	// command. Without them the second of two commands would wait for the first, without looking at its own context.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(greetingTime, cancel).Stop()
	g, err := greet(ctx, client)
	if err != nil {
		return err
	}
	if err := l.node.conn.suits(ctx, g); err != nil {
		return err
	}
	if g.RESP3 {
		l.number = conn.Link(l.node.conn.links.Add(1))
	}
	// The hooks are set before SUBSCRIBE, so that no push is missed.
	l.hooks = client.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      func(m rueidis.PubSubMessage) { l.pushed(m.Channel, m.Message) },
		OnSubscription: func(s rueidis.PubSubSubscription) { l.subscribed(s.Kind, s.Channel) },
	})
	return l.carrier.Subscribe(ctx, "subscribe", l.node.conn.channel)
}

// pushed passes a message on, in the goroutine that reads the connection.
func (l *link) pushed(channel, message string) {
	l.order.Lock()
	defer l.order.Unlock()
	if !l.silent {
		l.node.conn.handler.Pushed(l.number, channel, message)
	}
}

// silence ends the calls of the handler. After it has returned, none is under way either.
func (l *link) silence() {
	l.order.Lock()
	defer l.order.Unlock()
	l.silent = true
}

// fail gives the link up, once, so that the next call finds another. Its keeper then closes the connection.
func (l *link) fail(err error) {
	l.once.Do(func() {
		l.err = err
		l.node.link.CompareAndSwap(l, nil)
		close(l.failed)
	})
}

// call runs a script. A *conn.RefusedError or conn.ErrUnsent says that nothing was sent; after any other error that is
// no answer, the call may have run.
func (l *link) call(ctx context.Context, c *conn.Call, how resp.Sending) (string, error) {
	if err := l.enter(ctx); err != nil {
		return "", err
	}
	text, err := l.carrier.Call(ctx, c, how)
	l.leave(ctx, err)
	return text, err
}

// pipeline runs calls without commands of others in between.
func (l *link) pipeline(ctx context.Context, commands []resp.Command) []resp.Answer {
	if err := l.enter(ctx); err != nil {
		return resp.Failures(len(commands), err)
	}
	answers := l.carrier.Pipeline(ctx, commands)
	// The last answer tells about the connection: they come in order.
	l.leave(ctx, answers[len(answers)-1].Err)
	return answers
}

// subscribe runs SSUBSCRIBE or SUNSUBSCRIBE. It has no caller's context, because its outcome must be known even if the
// caller has gone.
func (l *link) subscribe(kind, channel string) error {
	ctx := l.node.conn.base
	if err := l.enter(ctx); err != nil {
		return err
	}
	err := l.carrier.Subscribe(ctx, kind, channel)
	l.leave(ctx, err)
	return err
}

// enter blocks until a command may be sent. A resp.Conn bounds that itself.
func (l *link) enter(ctx context.Context) error {
	if l.window == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return &conn.RefusedError{Err: err} // rueidis would not send it either, but would not say so
	}
	select {
	case l.window <- struct{}{}:
		return nil
	default:
	}
	// Only a full window costs this select.
	select {
	case l.window <- struct{}{}:
		return nil
	case <-l.failed:
		return conn.ErrUnsent
	case <-ctx.Done():
		return &conn.RefusedError{Err: ctx.Err()}
	}
}

// leave is called with the error of what was sent. An answer frees the place in the window. If ctx has ended, the
// answer may still come, so the place stays taken; any other failure ends the link.
func (l *link) leave(ctx context.Context, err error) {
	if err == nil { // without errors.As, which allocates
		l.free(1)
		return
	}
	var unsent *conn.RefusedError
	switch {
	case isAnswer(err):
		l.free(1)
	case ctx.Err() == nil:
		l.fail(err)
	case !errors.As(err, &unsent):
		l.owe()
	}
}

// free makes room for n commands.
func (l *link) free(n int64) {
	if l.window == nil {
		return
	}
	for range n {
		<-l.window
	}
}

// owe records that a command will be answered but nobody waits for it any more. Its place must not be free before. So
// something must find out when it is answered: a PING, whose answer comes after it.
func (l *link) owe() {
	if l.owed.Add(1) == 1 {
		l.node.conn.spawn(l.settle) // ends with the link
	}
}

// settle frees the places of commands that were given up, once they are answered. It runs while any are owed.
func (l *link) settle() {
	settled := make(chan struct{})
	defer close(settled)
	l.node.conn.spawn(func() { l.suspect(settled) }) // ends when this does
	for {
		// Those that are owed before the PING is sent are answered before its answer.
		n := l.owed.Load()
		if err := l.carrier.Ping(l.node.conn.base); err != nil {
			l.fail(err)
			return
		}
		l.free(n)
		if l.owed.Add(-n) == 0 {
			return
		}
	}
}

// suspect gives the link up if another server has taken this one's place while it was silent. A connection to a server
// that hangs, or that the network hides, may stay open for very long.
func (l *link) suspect(settled <-chan struct{}) {
	c := l.node.conn
	silence := time.NewTicker(silenceTime)
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
