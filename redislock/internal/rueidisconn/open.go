// Opening with a client of our own. redislock's url.go calls it; New in conn.go is for clients of the
// user.

package rueidisconn

import (
	"context"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/rueidis"
)

// Open connects to the servers that o names and returns a Conn with links of its own; b, if not nil, says which calls
// may share a run of a script. It also has a client of its own, which its Close closes. Where o asks for what such a
// link cannot do (RESP2, or a dialer that wraps connections), the links are connections of that client.
//
// It blocks until the client is connected or ctx ends.
func Open(ctx context.Context, o rueidis.ClientOption, b *conn.Bundle) (*Conn, error) {
	made := &sockets{custom: dialerOf(&o)}
	client, err := connect(ctx, o, made)
	if err != nil {
		return nil, err
	}
	c := New(client, true)
	c.respOpts, c.sockets = respOptions(&o, b), made
	return c, nil
}

// connect makes a client. rueidis connects at once and knows no context. So when ctx ends, rueidis is left to itself
// and what it brings then is closed. The connections that rueidis forgets when it fails are closed too.
func connect(ctx context.Context, o rueidis.ClientOption, made *sockets) (rueidis.Client, error) {
	o.DialCtxFn = made.dial
	type answer struct {
		client rueidis.Client
		err    error
	}
	word := make(chan answer, 1) // buffered, for the case that ctx ends first
	go func() {                  // ends when the dialer does, which is bounded by its timeout
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
