package zklock

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
)

// testTimeout is what the conformance suite asks for: short, because the suite waits for its end, and longer than a
// loaded machine lets a process stand still, with the third after which a sign of life is given.
const testTimeout = 3 * time.Second

func TestConformance(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	n := sharedServer(t)
	drivertest.Run(t, conformance(func() []*servers.ZooKeeperNode { return []*servers.ZooKeeperNode{n} }))
}

func TestConformance_Ensemble(t *testing.T) {
	longrun.Only(t)
	if drivertest.Apart(t) {
		return
	}
	e := sharedEnsemble(t)
	h := conformance(e.Nodes)
	h.Unlisted = true
	drivertest.Run(t, h)
}

// conformance is the harness for clients that each have a network of their own.
func conformance(nodes func() []*servers.ZooKeeperNode) drivertest.Harness {
	var mu sync.Mutex
	networks := make(map[driver.Driver]network)
	of := func(d driver.Driver) network {
		mu.Lock()
		defer mu.Unlock()
		return networks[d]
	}
	return drivertest.Harness{
		Open: func(ctx context.Context, t *testing.T) driver.Driver {
			n := newNetwork(t, nodes())
			d, err := New(ctx, n.addrs(), &Options{Timeout: testTimeout})
			if err != nil {
				t.Fatal(err)
			}
			mu.Lock()
			defer mu.Unlock()
			networks[d] = n
			return d
		},
		Crash: func(_ *testing.T, d driver.Driver) { of(d).cut() },
		Pause: func(_ *testing.T, d driver.Driver) func() {
			of(d).blackHole()
			return of(d).pass
		},
		Hang: func(*testing.T) func() {
			for _, n := range nodes() {
				n.Stop()
			}
			return func() {
				for _, n := range nodes() {
					n.Cont()
				}
			}
		},
		Lease: testTimeout, Patience: 15 * time.Second,
		Keeps: []string{"internal/servers."},
	}
}

// network is what is between one client and the servers.
type network []*servers.Proxy

func newNetwork(t testing.TB, nodes []*servers.ZooKeeperNode) network {
	t.Helper()
	var n network
	for _, node := range nodes {
		n = append(n, servers.NewProxy(t, node.Addr()))
	}
	return n
}

func (n network) addrs() []string {
	var all []string
	for _, p := range n {
		all = append(all, p.Addr())
	}
	return all
}

func (n network) each(f func(p *servers.Proxy)) {
	for _, p := range n {
		f(p)
	}
}

// cut ends all connections for good, as the death of the client does.
func (n network) cut() {
	n.each((*servers.Proxy).Refuse)
	n.each((*servers.Proxy).Reset)
}

func (n network) blackHole() { n.each(func(p *servers.Proxy) { p.BlackHole(servers.BothWays) }) }

func (n network) pass() { n.each((*servers.Proxy).Pass) }
