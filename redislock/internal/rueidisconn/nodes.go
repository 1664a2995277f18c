// The servers as operators see them. Diagnose and Locks of redislock ask here; calls of locks do not.

package rueidisconn

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/rueidis"
)

// nodeTime is how long Nodes waits for a server before the server counts as unreachable.
const nodeTime = time.Second

// server is a [conn.Node].
type server struct {
	addr   string
	major  int // of its version; 0 if unknown
	client rueidis.Client
}

// Nodes asks all servers that the client knows who they are, at the same time. It blocks for a second at most.
func (c *Conn) Nodes(ctx context.Context) ([]conn.Node, error) {
	found := c.primaries(ctx)
	if len(found) == 0 {
		return nil, &conn.RefusedError{Err: errors.Join(errors.New("no primary answers"), ctx.Err())}
	}
	nodes := make([]conn.Node, len(found))
	for i := range found {
		nodes[i] = found[i]
	}
	return nodes, nil
}

// primaries returns the primaries that answer, ordered by address.
func (c *Conn) primaries(ctx context.Context) []*server {
	ctx, cancel := context.WithTimeout(ctx, nodeTime)
	defer cancel()
	var mu sync.Mutex // guards found
	var found []*server
	var all sync.WaitGroup
	for addr, client := range c.client.Nodes() {
		all.Go(func() {
			g, err := within(ctx, func() (conn.Greeting, error) { return greet(ctx, client) })
			if err != nil || g.Replica {
				return // a server that cannot be asked is not reachable
			}
			mu.Lock()
			defer mu.Unlock()
			found = append(found, &server{addr, g.Major, client})
		})
	}
	all.Wait()
	slices.SortFunc(found, func(a, b *server) int { return cmp.Compare(a.addr, b.addr) })
	return found
}

// Addr returns the address.
func (s *server) Addr() string { return s.addr }

// Do runs a command over rueidis's shared connections. So it is not for commands that block or change a connection.
func (s *server) Do(ctx context.Context, args ...string) (any, error) {
	if len(args) == 0 || args[0] == "" {
		return nil, errors.New("no command")
	}
	// rueidis panics at a subscription without hooks, and at what the server sends after MONITOR.
	if name := strings.ToUpper(args[0]); strings.HasSuffix(name, "SUBSCRIBE") || name == "MONITOR" {
		return nil, fmt.Errorf("%s takes a whole connection", name)
	}
	return within(ctx, func() (any, error) {
		m, err := s.client.Do(ctx, s.client.B().Arbitrary(args...).Build()).ToMessage()
		if rueidis.IsRedisNil(err) {
			return nil, nil // the server's nil
		}
		if err != nil {
			return nil, err
		}
		return plain(&m), nil
	})
}
