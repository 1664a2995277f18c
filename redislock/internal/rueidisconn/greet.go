// The first question to a server over a connection of rueidis, and rueidis's values as package conn wants them. link.go
// and nodes.go ask.

package rueidisconn

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strconv"

	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/rueidis"
)

// greet asks a server about itself and about the connection. HELLO without arguments changes nothing. A server that
// does not know it is taken for an old primary.
func greet(ctx context.Context, client rueidis.CommandClient) (conn.Greeting, error) {
	said, err := client.Do(ctx, client.B().Arbitrary("HELLO").Build()).ToMessage()
	switch {
	case err == nil:
	case isAnswer(err) && judge(err, "").Verdict == conn.Unknown:
		return conn.Greeting{}, nil
	default:
		return conn.Greeting{}, err
	}
	g, _ := conn.ReadGreeting(plain(&said))
	return g, nil
}

// suits is [conn.Greeting.Suits] for the servers of c. To rueidis a node of a Cluster stands alone when the user may
// not ask it for the nodes, and the advice to use a client for a Cluster would be wrong then: so it is asked once more.
func (c *Conn) suits(ctx context.Context, g conn.Greeting) error {
	err := g.Suits(c.cluster)
	if !errors.Is(err, conn.ErrClusterNode) {
		return err
	}
	question := "SLOTS"
	if g.Major >= 8 { // as rueidis does
		question = "SHARDS"
	}
	said := c.client.Do(ctx, c.client.B().Arbitrary("CLUSTER", question).Build()).Error()
	if said != nil && isAnswer(said) && judge(said, "").Verdict == conn.Refused {
		return &conn.RefusedError{Err: said}
	}
	return err
}

// within runs f, and returns when ctx ends even if f does not. rueidis looks at the context neither while it connects
// nor while it waits for a connection of its own.
func within[T any](ctx context.Context, f func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1) // buffered, so that the goroutine ends even if nobody reads
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

// plain returns a value as string, int64, nil, or []any of these, which is all that [conn.Node.Do] promises.
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

// plainMap returns a map as a list of keys and values, sorted by key: rueidis does not keep the server's order.
func plainMap(m *rueidis.RedisMessage) any {
	pairs, _ := m.AsMap() // cannot fail: it is one
	list := make([]any, 0, 2*len(pairs))
	for _, key := range slices.Sorted(maps.Keys(pairs)) {
		value := pairs[key]
		list = append(list, key, plain(&value))
	}
	return list
}
