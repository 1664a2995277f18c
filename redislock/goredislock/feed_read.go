// What comes over a feed: messages for redislock's notices.go, and answers to demands, in their order. feed.go sends
// these.

package goredislock

import (
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

// read handles what comes over the connection, until it breaks. It is a goroutine that run starts. It has no time
// limit: if one struck in the middle of a message, the rest of it would be read as the next message. Silence is noticed
// by run.
func (f *feed) read() {
	for {
		m, err := f.pubsub.Receive(f.ctx)
		if err != nil {
			if _, answered := asAnswer(err); !answered {
				f.fail(err)
				return
			}
		}
		// An answer with an error is a sign of life too.
		f.heard.Store(true)
		if err != nil {
			f.refused(err)
			continue
		}
		f.take(m)
	}
}

// take handles one message.
func (f *feed) take(message any) {
	switch m := message.(type) {
	case *redis.Message:
		if f.conn.base.Err() == nil {
			f.conn.handler.Pushed(0, m.Channel, m.Payload)
		}
	case *redis.Pong:
		f.answered(ping, "")
	case *redis.Subscription:
		switch m.Kind {
		case "subscribe", "ssubscribe":
			f.lives.Store(true)
			if !f.answered(subscribe, m.Channel) {
				f.fail(errReplaced) // go-redis subscribes by itself over a new connection
			}
		case "unsubscribe", "sunsubscribe":
			if !f.answered(unsubscribe, m.Channel) && f.forget(m.Channel) { // nobody asked for it: the slot has moved
				f.tell(f.conn.handler.Resumed)
			}
		}
	}
}

// answered settles the demand whose turn it is. It reports false, and does nothing, if the turn is another demand's.
func (f *feed) answered(kind demandKind, channel string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sent) == 0 || f.sent[0].kind != kind || f.sent[0].channel != channel {
		return false
	}
	d := f.sent[0]
	f.sent = f.sent[1:]
	f.settle(d, nil)
	return true
}

// refused settles the demand whose turn it is with the server's error.
func (f *feed) refused(err error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if len(f.sent) == 0 {
		// With nothing asked, the error is about the connection itself: no permission, or not now.
		if v := verdict(err); v != conn.Refused && v != conn.Later {
			err = errReplaced // go-redis has subscribed by itself over a new connection
		}
		f.end(err)
		return
	}
	d := f.sent[0]
	f.sent = f.sent[1:]
	if d.kind == subscribe && f.channels[d.channel] == d {
		delete(f.channels, d.channel)
	}
	f.settle(d, err)
}

// settle tells the goroutines that wait for a demand. It is called once for each demand.
func (*feed) settle(d *demand, err error) {
	if d.known != nil {
		d.err = err
		close(d.known)
	}
}

// forget forgets a subscription that has ended by itself, and reports whether there was one.
func (f *feed) forget(channel string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	d := f.channels[channel]
	if d == nil {
		return false
	}
	select {
	case <-d.known:
		delete(f.channels, channel)
		return true
	default: // this one begins; the one that has ended came before it
		return false
	}
}
