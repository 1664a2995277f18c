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
	// mostUnderWay is how many commands may be under way on a link. rueidis keeps them in a ring, and when the ring is
	// full (1024 unless the client's RingScaleEachConn says otherwise) a call waits without looking at its context. So
	// the link never fills it.
	mostUnderWay = 512

	// greetingTime bounds the first commands on a new connection.
	greetingTime = 5 * time.Second

	// silenceTime is how long a server that owes answers may say nothing before something asks whether another one has
	// taken its place.
	silenceTime = 500 * time.Millisecond
)

// link is one connection to one server: calls go over it and pushes come over it, from when it is made until it
// breaks. It is never mended; its node makes a new one.
type link struct {
	node   *node
	number conn.Link // 0 with RESP2, where rueidis opens a second connection for the pushes
	peers  []string  // the servers that rueidis knew before it made the connection, if it is not a Cluster

	carrier carrier
	resp    *resp.Conn      // the carrier, if it is one
	hooks   <-chan error    // else: rueidis closes it when the connection has ended
	broken  <-chan struct{} // closed when that has ended

	window chan struct{} // if resp is nil: holds one for each command under way
	owed   atomic.Int64  // of those, the ones for whose answers nobody waits any more

	once   sync.Once
	failed chan struct{} // closed by fail
	err    error         // why; set before that

	// order guards silent. Who tells the handler something holds it, so that nothing is told after silence.
	order  sync.Mutex
	silent bool

	subscribing   sync.Mutex               // guards subscriptions; nothing is waited for under it
	subscriptions map[string]*subscription // by channel: those that Listen asked for
}

func newLink(n *node, peers []string) *link {
	return &link{
		node: n, peers: peers, failed: make(chan struct{}), subscriptions: make(map[string]*subscription),
	}
}

// open greets the server and subscribes, over a connection of rueidis.
func (l *link) open(ctx context.Context, client rueidis.DedicatedClient) error {
	l.carrier, l.window = dedicated{client}, make(chan struct{}, mostUnderWay)
	// A context that has an end but no deadline makes rueidis start the goroutines of the connection with the first
	// command. Without them the second of two commands would wait for the first, and not look at its own context.
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer time.AfterFunc(greetingTime, cancel).Stop()
	g, err := greet(ctx, client)
	if err != nil {
		return err
	}
	if err := g.Suits(l.node.conn.cluster); err != nil {
		return err
	}
	if g.RESP3 {
		l.number = conn.Link(l.node.conn.links.Add(1))
	}
	l.hooks = client.SetPubSubHooks(rueidis.PubSubHooks{
		OnMessage:      func(m rueidis.PubSubMessage) { l.pushed(m.Channel, m.Message) },
		OnSubscription: func(s rueidis.PubSubSubscription) { l.subscribed(s.Kind, s.Channel) },
	})
	return l.carrier.Subscribe(ctx, "subscribe", l.node.conn.channel)
}

// pushed takes a message, in the goroutine that reads the connection.
func (l *link) pushed(channel, message string) {
	l.order.Lock()
	defer l.order.Unlock()
	if !l.silent {
		l.node.conn.handler.Pushed(l.number, channel, message)
	}
}

// silence ends the calls of the handler: a link that was dropped pushes nothing.
func (l *link) silence() {
	l.order.Lock()
	defer l.order.Unlock()
	l.silent = true
}

// fail gives the link up, so that the next call finds another.
func (l *link) fail(err error) {
	l.once.Do(func() {
		l.err = err
		l.node.link.CompareAndSwap(l, nil)
		close(l.failed)
	})
}

// call runs a script. An error that says that nothing was sent is a *RefusedError or conn.ErrUnsent.
func (l *link) call(ctx context.Context, c *conn.Call, how resp.Sending) (string, error) {
	if err := l.enter(ctx); err != nil {
		return "", err
	}
	text, err := l.carrier.Call(ctx, c, how)
	l.leave(ctx, err)
	return text, err
}

// pipeline runs calls that nobody else's commands come between.
func (l *link) pipeline(ctx context.Context, commands []resp.Command) []resp.Answer {
	if err := l.enter(ctx); err != nil {
		return resp.Failures(len(commands), err)
	}
	answers := l.carrier.Pipeline(ctx, commands)
	l.leave(ctx, answers[len(answers)-1].Err)
	return answers
}

// subscribe runs SSUBSCRIBE or SUNSUBSCRIBE.
func (l *link) subscribe(kind, channel string) error {
	ctx := l.node.conn.base
	if err := l.enter(ctx); err != nil {
		return err
	}
	err := l.carrier.Subscribe(ctx, kind, channel)
	l.leave(ctx, err)
	return err
}

// enter waits until a command may be sent. A resp.Conn looks after that itself.
func (l *link) enter(ctx context.Context) error {
	if l.window == nil {
		return nil
	}
	if err := ctx.Err(); err != nil {
		return &conn.RefusedError{Err: err} // rueidis would not send it either, but not say so
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
		return conn.ErrUnsent
	case <-ctx.Done():
		return &conn.RefusedError{Err: ctx.Err()}
	}
}

// leave is called with the error of what was sent.
func (l *link) leave(ctx context.Context, err error) {
	if err == nil { // without what errors.As needs, which has to be allocated
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

// owe says that a command will still be answered, but nobody waits for it. Its place in the window must not be taken
// before, so something asks when that is: a PING, which is answered after it.
func (l *link) owe() {
	if l.owed.Add(1) == 1 {
		l.node.conn.spawn(l.settle) // ends with the link
	}
}

// settle frees the places of the commands that were given up, once they are answered.
func (l *link) settle() {
	settled := make(chan struct{})
	defer close(settled)
	l.node.conn.spawn(func() { l.suspect(settled) }) // ends when this does
	for {
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

// suspect gives the link up if another server has taken the place of this one while it was silent. To a server that
// hangs, or that the network hides, a connection may stay open for long.
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
