package redislock

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/rueidis"
)

// rueidisNodeTime is how long Nodes waits for a server before it counts as not reachable.
const rueidisNodeTime = time.Second

// rueidisServer is a Node.
type rueidisServer struct {
	addr   string
	major  int // of its version; 0 if unknown
	client rueidis.Client
}

// Nodes asks all servers that the client knows who they are.
func (c *rueidisConn) Nodes(ctx context.Context) ([]Node, error) {
	found := c.primaries(ctx)
	if len(found) == 0 {
		return nil, &RefusedError{Err: errors.Join(errors.New("no primary answers"), ctx.Err())}
	}
	nodes := make([]Node, len(found))
	for i := range found {
		nodes[i] = found[i]
	}
	return nodes, nil
}

// primaries returns the primaries that answer, by address.
func (c *rueidisConn) primaries(ctx context.Context) []*rueidisServer {
	ctx, cancel := context.WithTimeout(ctx, rueidisNodeTime)
	defer cancel()
	var mu sync.Mutex // guards found
	var found []*rueidisServer
	var all sync.WaitGroup
	for addr, client := range c.client.Nodes() {
		all.Go(func() {
			g, err := within(ctx, func() (conn.Greeting, error) { return greet(ctx, client) })
			if err != nil || g.Replica {
				return // one that cannot be asked is not reachable
			}
			mu.Lock()
			defer mu.Unlock()
			found = append(found, &rueidisServer{addr, g.Major, client})
		})
	}
	all.Wait()
	slices.SortFunc(found, func(a, b *rueidisServer) int { return cmp.Compare(a.addr, b.addr) })
	return found
}

// Addr is the address.
func (s *rueidisServer) Addr() string { return s.addr }

// Do runs a command over rueidis's shared connections, so it is not for commands that block or change a connection.
func (s *rueidisServer) Do(ctx context.Context, args ...string) (any, error) {
	if len(args) == 0 || args[0] == "" {
		return nil, errors.New("no command")
	}
	// rueidis panics at the one, and at what the server sends after the other.
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

// within runs f, and returns when ctx ends although f does not: rueidis looks at the context neither while it connects
// nor while it has the connection for itself.
func within[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1) // buffered, so that nobody need wait for it
	go func() {                  // ends with the command, which rueidis's own time limits end
		value, err := f()
		done <- result{value, err}
	}()
	select {
	case r := <-done:
		return r.value, r.err
	case <-ctx.Done():
		var none T
		return none, ctx.Err()
	}
}

// plain returns a value as string, int64, nil, or []any of these.
func plain(m *rueidis.RedisMessage) any {
	switch {
	case m.IsNil():
		return nil
	case m.IsInt64():
		n, _ := m.AsInt64() // cannot fail: it is one
		return n
	case m.IsBool():
		if yes, _ := m.ToBool(); yes { // cannot fail: it is one
			return int64(1)
		}
		return int64(0)
	case m.IsFloat64():
		f, _ := m.ToFloat64() // cannot fail: it is one
		return strconv.FormatFloat(f, 'g', -1, 64)
	case m.IsArray():
		values, _ := m.ToArray() // cannot fail: it is one
		list := make([]any, len(values))
		for i := range values {
			list[i] = plain(&values[i])
		}
		return list
	case m.IsMap():
		return plainMap(m)
	}
	if err := m.Error(); err != nil { // inside of a list
		return err.Error()
	}
	s, _ := m.ToString() // nothing else is left
	return s
}

// plainMap returns a map as a list of keys and values, by key: rueidis does not keep the server's order.
func plainMap(m *rueidis.RedisMessage) any {
	pairs, _ := m.AsMap() // cannot fail: it is one
	list := make([]any, 0, 2*len(pairs))
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		value := pairs[key]
		list = append(list, key, plain(&value))
	}
	return list
}
