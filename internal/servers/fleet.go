package servers

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
)

// fleet is a number of servers that belong together.
type fleet struct {
	t     testing.TB
	nodes []*RedisNode
}

// Nodes returns all servers, also those that do not run.
func (f *fleet) Nodes() []*RedisNode { return slices.Clone(f.nodes) }

// Addrs returns host:port of each server.
func (f *fleet) Addrs() []string { return addrs(f.nodes) }

// At returns the server at host:port, or nil if there is none.
func (f *fleet) At(addr string) *RedisNode {
	for _, n := range f.nodes {
		if n.Addr() == addr {
			return n
		}
	}
	return nil
}

func addrs(nodes []*RedisNode) []string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.Addr())
	}
	return all
}

// up returns those that run and are not stopped.
func up(nodes []*RedisNode) []*RedisNode {
	return slices.DeleteFunc(slices.Clone(nodes), func(n *RedisNode) bool { return !n.answers() })
}

// others returns all but n.
func others(nodes []*RedisNode, n *RedisNode) []*RedisNode {
	return slices.DeleteFunc(slices.Clone(nodes), func(other *RedisNode) bool { return other == n })
}

// restart starts those again that do not run.
func restart(nodes []*RedisNode) {
	for _, n := range nodes {
		if !n.Alive() {
			n.Restart()
		}
	}
}

// await returns when ready returns nil, and ends the test with what it says if that takes too long.
func (f *fleet) await(what string, ready func(ctx context.Context) error) {
	f.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if err := poll(ctx, ready); err != nil {
		f.t.Fatalf("waited %v for %s: %v (%s)", startTimeout, what, err, f.states())
	}
}

// states tells how each server's process is: one that cannot be reached may be dead, stopped, or hang in its disk.
func (f *fleet) states() string {
	var all []string
	for _, n := range f.nodes {
		all = append(all, n.Addr()+" "+n.state())
	}
	return strings.Join(all, ", ")
}

// expect returns an error unless the field has the value.
func expect(fields map[string]string, name string, value any) error {
	if want := fmt.Sprint(value); fields[name] != want {
		return fmt.Errorf("%s is %q, not %q", name, fields[name], want)
	}
	return nil
}

// errStill says that somebody has not been replaced yet.
func errStill(n *RedisNode) error { return fmt.Errorf("it is still %s", n.Addr()) }
