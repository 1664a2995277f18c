// Feeds: connections for pushes. listen.go makes and replaces them; feed_read.go reads them; here is what they send and
// how they end.

package goredislock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

// lookTime is how often a feed is looked at. If nothing was heard in between, the server is pinged.
const (
	// lookTime is how often a feed is looked at. If nothing was heard in between, the server is pinged.
	lookTime = 2 * time.Second

	// mostSilence is how many looks in a row may find that nothing was heard. Then the server hangs, or the machine is
	// gone.
	mostSilence = 3
)

// Why a feed has ended.
var (
	errSilent   = errors.New("the server does not answer")
	errReplaced = errors.New("the client has replaced the connection")
	errEnded    = errors.New("the connection for pushes has ended")
)

// feed is one connection over which pushes come, and the channels that it is subscribed to. It ends when the connection
// breaks and is not used again. go-redis would make a new connection and subscribe again, but does not say what was
// missed. In a Cluster it also does that wrongly: channels of several slots in one command, in some versions at any
// node.
type feed struct {
	conn    *transport
	pubsub  *redis.PubSub
	sharded bool            // its channels are for SPUBLISH
	ctx     context.Context //nolint:containedctx // ended by stop: the goroutines of the feed end with it
	stop    context.CancelFunc
	begun   time.Time // when it was made, for the pauses of listen.go

	work  chan struct{} // buffer of one: something is in todo
	ended chan struct{} // closed by run at the end, when err is set
	heard atomic.Bool   // something came since the last look
	lives atomic.Bool   // a subscription was confirmed, so pushes may be missed from then on

	mu       sync.Mutex         // guards what follows; nothing is waited for under it
	channels map[string]*demand // subscribed to or about to be; nil at the end
	todo     []*demand          // not sent yet
	sent     []*demand          // sent and not answered; answers come in this order
	err      error              // why it ended; the first reason counts
}

// demand is something that a feed sends and that the server answers.
type demand struct {
	kind    demandKind
	channel string
	known   chan struct{} // closed when there is an answer, or there will be none; nil if nobody asks
	err     error         // set before known is closed
}

// demandKind is what a demand sends.
type demandKind int

const (
	subscribe demandKind = iota
	unsubscribe
	ping
)

// newFeed makes a feed from a server. Nothing is connected until run sends the first demand.
func (c *transport) newFeed(node *redis.Client, sharded bool) *feed {
	f := &feed{
		conn: c, pubsub: node.Subscribe(c.base), sharded: sharded, begun: time.Now(),
		work: make(chan struct{}, 1), ended: make(chan struct{}),
		channels: make(map[string]*demand),
	}
	f.ctx, f.stop = context.WithCancel(c.base)
	return f
}

// run sends the commands that are due, and watches the connection until it ends. It is the feed's own goroutine, and
// the only one that writes.
func (f *feed) run() {
	// The reader may hang in the connection, so run ends only after it has closed that.
	read := make(chan struct{})
	go func() { // ends when run closes the connection
		defer close(read)
		f.read()
	}()
	look := time.NewTicker(lookTime)
	defer look.Stop()
	for silence := 0; f.ctx.Err() == nil; {
		select {
		case <-f.work:
			f.send()
		case <-look.C:
			// Counted up first: whatever was heard resets it.
			silence++
			if f.heard.Swap(false) {
				silence = 0
			}
			if silence >= mostSilence {
				f.fail(errSilent)
			} else if silence > 0 { // only an answer can tell silence from death
				f.demand(&demand{kind: ping})
			}
		case <-f.ctx.Done():
		}
	}
	f.finish()
	// Close comes last, because it waits for a connection that is being made.
	_ = f.pubsub.Close() // fails only if it is broken already
	<-read
}

// fail ends the feed. The first error is the one that counts.
func (f *feed) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end(err)
}

// end is fail for a caller that holds the mutex.
func (f *feed) end(err error) {
	if f.err == nil {
		f.err = err
	}
	f.stop()
}

// finish tells everybody that the feed has ended, and takes it out of the transport first: the next Listen must get a
// new one.
func (f *feed) finish() {
	f.fail(driver.ErrClosed) // if nothing else was the reason
	f.conn.forget(f)
	f.mu.Lock()
	open := slices.Concat(f.sent, f.todo)
	f.sent, f.todo, f.channels = nil, nil, nil
	f.mu.Unlock()
	for _, d := range open {
		f.settle(d, f.err)
	}
	close(f.ended)
	switch {
	case !f.lives.Load(): // an attempt during an outage, of which there are many: nothing was missed over it
	case f.sharded: // keep makes no new one, and so tells nobody of it
		f.tell(f.conn.handler.Resumed)
	default:
		f.tell(f.conn.handler.Dropped)
	}
}

// tell tells the handler that messages may have been lost. After Close nobody wants to know.
func (f *feed) tell(tell func(conn.Link)) {
	if f.conn.base.Err() == nil {
		tell(0)
	}
}

// listen blocks until the server has confirmed that channel is subscribed to, or ctx ends.
func (f *feed) listen(ctx context.Context, channel string) error {
	d := f.subscription(channel)
	if d == nil {
		return errEnded
	}
	select {
	case <-d.known:
		return d.err
	default:
	}
	select {
	case <-d.known:
		return d.err
	case <-ctx.Done(): // the subscription goes on: the next Listen finds it
		return ctx.Err()
	}
}

// subscription returns the demand for channel, and makes it if there is none. At the end of the feed it returns nil.
func (f *feed) subscription(channel string) *demand {
	f.mu.Lock()
	defer f.mu.Unlock()
	// The map is nil from the end of the feed on, so nobody waits for a subscription that nobody will make.
	if f.channels == nil {
		return nil
	}
	d := f.channels[channel]
	if d == nil {
		d = &demand{kind: subscribe, channel: channel, known: make(chan struct{})}
		f.channels[channel] = d
		f.enqueue(d)
	}
	return d
}

// unlisten ends a subscription, if there is one. It does not wait for the server.
func (f *feed) unlisten(channel string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.channels[channel] != nil {
		delete(f.channels, channel)
		f.enqueue(&demand{kind: unsubscribe, channel: channel})
	}
}

// demand enqueues something to be sent.
func (f *feed) demand(d *demand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enqueue(d)
}

// enqueue is demand for a caller that holds the mutex.
func (f *feed) enqueue(d *demand) {
	f.todo = append(f.todo, d)
	select {
	case f.work <- struct{}{}:
	default: // it has been said already
	}
}

// send sends the commands that are due. Only run calls it, so answers come in the order of sent.
func (f *feed) send() {
	f.mu.Lock()
	todo := f.todo
	f.todo = nil
	// Before they are written, because an answer may come before write returns.
	f.sent = append(f.sent, todo...)
	f.mu.Unlock()
	for _, d := range todo {
		if err := f.write(d); err != nil {
			f.fail(err)
			return
		}
	}
}

// write sends one demand. The first one connects, which may take DialTimeout.
func (f *feed) write(d *demand) error {
	switch {
	case d.kind == ping:
		return f.pubsub.Ping(f.ctx)
	case d.kind == subscribe && f.sharded:
		return f.pubsub.SSubscribe(f.ctx, d.channel)
	case d.kind == subscribe:
		return f.pubsub.Subscribe(f.ctx, d.channel)
	case f.sharded:
		return f.pubsub.SUnsubscribe(f.ctx, d.channel)
	}
	return f.pubsub.Unsubscribe(f.ctx, d.channel)
}
