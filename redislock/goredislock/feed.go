package goredislock

import (
	"context"
	"errors"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/redis/go-redis/v9"
)

const (
	// lookTime is how often a feed is looked at. If nothing was heard in between, the server is pinged.
	lookTime = 2 * time.Second

	// mostSilence is how many times in a row nothing may be heard. Then the server hangs, or the machine is gone.
	mostSilence = 3
)

var (
	errSilent   = errors.New("the server does not answer")
	errReplaced = errors.New("the client has replaced the connection")
	errEnded    = errors.New("the connection for pushes has ended")
)

// feed is one connection over which pushes come, and the channels that it is subscribed to. It ends when the connection
// breaks, and is not used again: go-redis would make a new connection and subscribe again, but says nothing of what was
// missed, and in a Cluster does it wrongly (channels of several slots in one command, in some versions at any node).
type feed struct {
	conn    *transport
	pubsub  *redis.PubSub
	sharded bool            // the channels are for SPUBLISH
	ctx     context.Context //nolint:containedctx // ended by stop: the goroutines of the feed end with it
	stop    context.CancelFunc
	begun   time.Time

	work  chan struct{} // has one place: something is to be sent
	ended chan struct{} // closed by run at the end, when err is set
	heard atomic.Bool   // since it was looked at last

	mu       sync.Mutex         // guards what follows; nothing is waited for under it
	channels map[string]*demand // subscribed to, or about to be; nil at the end
	todo     []*demand          // not sent yet
	sent     []*demand          // without an answer yet. Answers come in the same order
	err      error              // why it ended
}

// demand is what a feed sends and wants an answer to.
type demand struct {
	kind    demandKind
	channel string
	known   chan struct{} // closed when there is an answer, or there will be none
	err     error         // set before that
}

type demandKind int

const (
	subscribe demandKind = iota
	unsubscribe
	ping
)

// newFeed makes a feed from a server. Its run must be called, which connects.
func (c *transport) newFeed(node *redis.Client, sharded bool) *feed {
	f := &feed{
		conn: c, pubsub: node.Subscribe(c.base), sharded: sharded, begun: time.Now(),
		work: make(chan struct{}, 1), ended: make(chan struct{}),
		channels: make(map[string]*demand),
	}
	f.ctx, f.stop = context.WithCancel(c.base)
	return f
}

// run sends what is to be sent, and looks after the connection until it ends.
func (f *feed) run() {
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
			silence++
			if f.heard.Swap(false) {
				silence = 0
			}
			if silence >= mostSilence {
				f.fail(errSilent)
			} else if silence > 0 {
				f.demand(&demand{kind: ping})
			}
		case <-f.ctx.Done():
		}
	}
	f.finish()
	// The last, because it waits for a connection that is being made.
	_ = f.pubsub.Close() // fails only if it is broken already
	<-read
}

// fail ends the feed.
func (f *feed) fail(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.end(err)
}

// end is fail under the mutex.
func (f *feed) end(err error) {
	if f.err == nil {
		f.err = err
	}
	f.stop()
}

// finish tells everybody that the feed has ended.
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
	f.dropped()
}

// dropped tells the handler that messages may have been lost.
func (f *feed) dropped() {
	if f.conn.base.Err() == nil {
		f.conn.handler.Dropped(0)
	}
}

// listen returns when the server has confirmed that channel is subscribed to.
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
	case <-ctx.Done(): // the subscription goes on: who comes next finds it
		return ctx.Err()
	}
}

// subscription returns the demand for channel, and makes it if there is none. At the end of the feed it returns nil.
func (f *feed) subscription(channel string) *demand {
	f.mu.Lock()
	defer f.mu.Unlock()
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

// unlisten ends a subscription, if there is one. It does not wait.
func (f *feed) unlisten(channel string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.channels[channel] != nil {
		delete(f.channels, channel)
		f.enqueue(&demand{kind: unsubscribe, channel: channel})
	}
}

// demand has something sent.
func (f *feed) demand(d *demand) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.enqueue(d)
}

// enqueue is demand under the mutex.
func (f *feed) enqueue(d *demand) {
	f.todo = append(f.todo, d)
	select {
	case f.work <- struct{}{}:
	default: // it has been said already
	}
}

// send sends what is to be sent. Only run calls it, so the order in which answers come is that of sent.
func (f *feed) send() {
	f.mu.Lock()
	todo := f.todo
	f.todo = nil
	f.sent = append(f.sent, todo...)
	f.mu.Unlock()
	for _, d := range todo {
		if err := f.write(d); err != nil {
			f.fail(err)
			return
		}
	}
}

// write sends one demand. The first one connects.
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
