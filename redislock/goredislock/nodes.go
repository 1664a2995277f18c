// The servers as operators see them. Diagnose and Locks of redislock ask here; calls of locks do not.

package goredislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

// nodeTime is how long Nodes waits for a server before the server counts as unreachable.
const (
	// nodeTime is how long Nodes waits for a server before it counts as not reachable.
	nodeTime = time.Second

	// samples is how many keys are looked up when the Cluster cannot be asked for all its nodes. With 4,096 random
	// slots, a node with a usual share of them is found.
	samples = 4096
)

// server is a [conn.Node].
type server struct {
	conn   *transport
	client *redis.Client
}

// Nodes asks the servers that the client knows who they are, at the same time. It blocks for 2 seconds at most: one to
// find them and one to ask them.
func (c *transport) Nodes(ctx context.Context) ([]conn.Node, error) {
	bounded, cancel := context.WithTimeout(ctx, 2*nodeTime)
	defer cancel()
	var mu sync.Mutex // guards found
	var found []conn.Node
	var all sync.WaitGroup
	for _, client := range c.clients(bounded) {
		all.Go(func() {
			s := &server{c, client}
			if s.isPrimary(bounded) { // a server that cannot be asked is not reachable
				mu.Lock()
				defer mu.Unlock()
				found = append(found, s)
			}
		})
	}
	all.Wait()
	if len(found) == 0 {
		return nil, &conn.RefusedError{Err: errors.Join(errors.New("no primary answers"), ctx.Err())}
	}
	slices.SortFunc(found, func(a, b conn.Node) int { return cmp.Compare(a.Addr(), b.Addr()) })
	return found, nil
}

// clients returns the clients of the servers that should be primaries.
func (c *transport) clients(ctx context.Context) []*redis.Client {
	if c.cluster == nil {
		return []*redis.Client{c.single}
	}
	bounded, cancel := context.WithTimeout(ctx, nodeTime)
	defer cancel()
	found, err := within(bounded, c, func() (map[*redis.Client]bool, error) {
		var mu sync.Mutex // guards found
		found := make(map[*redis.Client]bool)
		err := c.cluster.ForEachMaster(bounded, func(_ context.Context, node *redis.Client) error {
			mu.Lock()
			defer mu.Unlock()
			found[node] = true
			return nil
		})
		return found, err
	})
	// ForEachMaster asks one node for the slots, and that one may hang. Take what the client knew before.
	if err != nil {
		found = c.sample(ctx)
	}
	list := make([]*redis.Client, 0, len(found))
	for node := range found {
		list = append(list, node)
	}
	return list
}

// sample returns the owners of many slots, as the cluster client knows them. It asks no server.
func (c *transport) sample(ctx context.Context) map[*redis.Client]bool {
	found := make(map[*redis.Client]bool)
	for i := range samples {
		if node, err := c.owner(ctx, strconv.Itoa(i)); err == nil {
			found[node] = true
		}
	}
	return found
}

// isPrimary asks the server who it is, by HELLO, which every user may run. A server that does not know HELLO is taken
// for an old primary.
func (s *server) isPrimary(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, nodeTime)
	defer cancel()
	said, err := s.Do(ctx, "HELLO")
	if _, answered := asAnswer(err); answered {
		return verdict(err) == conn.Unknown
	}
	g, _ := conn.ReadGreeting(said)
	return err == nil && !g.Replica
}

// Addr returns the address. A client that asks Sentinels for it does not tell.
func (s *server) Addr() string {
	if addr := s.client.Options().Addr; addr != ofSentinels {
		return addr
	}
	return "the primary"
}

// Do runs a command over a connection of the pool. So it is not for commands that change their connection.
func (s *server) Do(ctx context.Context, args ...string) (any, error) {
	if len(args) == 0 || args[0] == "" {
		return nil, errors.New("no command")
	}
	if name := strings.ToUpper(args[0]); strings.HasSuffix(name, "SUBSCRIBE") || name == "MONITOR" {
		return nil, fmt.Errorf("%s takes a whole connection", name)
	}
	words := make([]any, len(args))
	for i, arg := range args {
		words[i] = arg
	}
	cmd := newOnce(ctx, words...)
	return within(ctx, s.conn, func() (any, error) {
		switch err := s.client.Process(ctx, cmd); {
		case errors.Is(err, redis.Nil):
			return nil, nil // the server's nil
		case err != nil:
			return nil, err
		}
		return plain(cmd.Val()), nil
	})
}

// plain returns a value as string, int64, nil, or []any of these.
func plain(value any) any {
	switch v := value.(type) {
	case nil, string, int64:
		return v
	case bool:
		if v {
			return int64(1)
		}
		return int64(0)
	case float64:
		return strconv.FormatFloat(v, 'g', -1, 64)
	case error: // inside of a list
		if errors.Is(v, redis.Nil) {
			return nil
		}
		return v.Error()
	case []any:
		list := make([]any, len(v))
		for i := range v {
			list[i] = plain(v[i])
		}
		return list
	case map[any]any:
		return plainMap(v)
	}
	return fmt.Sprint(value) // large numbers
}

// plainMap returns a map as a list of keys and values, sorted by key: go-redis does not keep the server's order.
func plainMap(m map[any]any) any {
	values := make(map[string]any, len(m))
	keys := make([]string, 0, len(m))
	for key, value := range m {
		name := fmt.Sprint(key)
		keys = append(keys, name)
		values[name] = plain(value)
	}
	// A fixed order lets callers read the list in the same way each time.
	slices.Sort(keys)
	list := make([]any, 0, 2*len(m))
	for _, key := range keys {
		list = append(list, key, values[key])
	}
	return list
}
