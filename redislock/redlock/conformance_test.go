package redlock

import (
	"context"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/servers"
)

func TestConformance(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	nodes := startNodes(t, 5)
	drivertest.Run(t, drivertest.Harness{
		Open: func(ctx context.Context, t *testing.T) driver.Driver {
			d := openAt(ctx, t, addrs(nodes))
			// A look that one of the nodes does not answer may tell a smaller token than the hold's.
			soon(t, "all nodes are connected", func() bool {
				return !slices.ContainsFunc(d.nodes, func(n *node) bool { return n.driver() == nil })
			})
			return d
		},
		Hang: func(*testing.T) func() { // a majority hangs
			for _, n := range nodes[:3] {
				n.Stop()
			}
			return func() {
				for _, n := range nodes[:3] {
					n.Cont()
				}
			}
		},
	})
}

// startNodes starts servers that are new to each other.
func startNodes(t testing.TB, n int) []*servers.RedisNode {
	t.Helper()
	var nodes []*servers.RedisNode
	for range n {
		nodes = append(nodes, servers.RedisServer(t, nil))
	}
	return nodes
}

func addrs(nodes []*servers.RedisNode) []string {
	var all []string
	for _, n := range nodes {
		all = append(all, n.Addr())
	}
	return all
}

// openAt opens the URL of these servers.
func openAt(ctx context.Context, t testing.TB, addrs []string) *Driver {
	t.Helper()
	d, err := driver.DefaultMux.Open(ctx,
		"redlock://"+strings.Join(addrs, ",")+"?check=none&longest-lease=1h&node-timeout=5s", driver.Config{})
	if err != nil {
		t.Fatal(err)
	}
	return d.(*Driver)
}
