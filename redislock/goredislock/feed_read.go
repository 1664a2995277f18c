package goredislock

import (
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

// read takes what comes over the connection, until it breaks. It has no time limit: a limit that strikes in the middle
// of a message would leave half of it to be read as the next one.
func (f *feed) read() {
	for {
		m, err := f.pubsub.Receive(f.ctx)
		if err != nil {
			if _, answered := asAnswer(err); !answered {
				f.fail(err)
				return
			}
		}
		f.heard.Store(true)
		if err != nil {
			f.refused(err)
			continue
		}
		f.take(m)
	}
}

// take takes a message.
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
			if !f.answered(subscribe, m.Channel) {
				f.fail(errReplaced) // go-redis subscribes by itself over a new connection
			}
		case "unsubscribe", "sunsubscribe":
			if !f.answered(unsubscribe, m.Channel) && f.forget(m.Channel) {
				f.dropped() // nobody asked for it: its slot has moved
			}
		}
	}
}

// answered settles the demand whose turn it is. It reports false, and does nothing, if that is another one.
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
		// else it is about the connection: no permission, not now
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

// settle tells who waits for a demand. It is called once for each.
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
	default: // it is one that begins: what has ended is the one before
		return false
	}
}
