package rueidisconn

import (
	"context"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/rueidis"
)

// Open connects to the servers that o names and returns a Conn that makes its links by itself, as b says, if not nil,
// with calls that share a run. It has a client of its own, which its Close closes. Where o asks for what a link of its
// own cannot do (RESP2, or a dialer that wraps connections) the links are connections of that client.
func Open(ctx context.Context, o rueidis.ClientOption, b *conn.Bundle) (*Conn, error) {
	made := &sockets{custom: dialerOf(&o)}
	client, err := connect(ctx, o, made)
	if err != nil {
		return nil, err
	}
	c := New(client, true)
	c.itself, c.sockets = respOptions(&o, b), made
	return c, nil
}

// connect makes a client. rueidis connects at once and knows no context, so it is left to itself when ctx ends, and
// what it brings then is closed. So is what it forgets when it fails.
func connect(ctx context.Context, o rueidis.ClientOption, made *sockets) (rueidis.Client, error) {
	o.DialCtxFn = made.dial
	type answer struct {
		client rueidis.Client
		err    error
	}
	word := make(chan answer, 1)
	go func() { // ends when the dialer does, which is bounded by its timeout
		client, err := rueidis.NewClient(o)
		word <- answer{client, err}
	}()
	select {
	case a := <-word:
		if a.err != nil {
			made.close()
		}
		return a.client, a.err
	case <-ctx.Done():
		made.close()
		go func() {
			if a := <-word; a.client != nil {
				a.client.Close()
			}
		}()
		return nil, ctx.Err()
	}
}
