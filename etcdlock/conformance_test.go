package etcdlock

import (
	"context"
	"net/url"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
)

// sessionTime is the sessions' timeout in the suite: short, because crashes are waited for, but longer than a busy
// machine lets a process stand still, with the third after which a sign of life is given.
const sessionTime = 3 * time.Second

// suiteEtcd is what the suite is run on. Each driver reaches each server through a proxy of its own, so that it can be
// cut off.
type suiteEtcd struct {
	nodes   []*servers.EtcdNode
	proxies map[driver.Driver][]*servers.Proxy
}

func (s *suiteEtcd) harness() drivertest.Harness {
	s.proxies = make(map[driver.Driver][]*servers.Proxy)
	return drivertest.Harness{
		Open: func(ctx context.Context, t *testing.T) driver.Driver { return s.open(ctx, t) },
		Crash: func(_ *testing.T, d driver.Driver) {
			d.(*Driver).vanish()
		},
		Pause: func(_ *testing.T, d driver.Driver) func() {
			for _, p := range s.proxies[d] {
				p.BlackHole(servers.BothWays)
			}
			return func() {
				for _, p := range s.proxies[d] {
					p.Pass()
				}
			}
		},
		Hang: func(_ *testing.T) func() {
			for _, n := range s.nodes {
				n.Stop()
			}
			return func() {
				for _, n := range s.nodes {
					n.Cont()
				}
			}
		},
	}
}

func (s *suiteEtcd) open(ctx context.Context, t *testing.T) driver.Driver {
	t.Helper()
	var addrs []string
	var proxies []*servers.Proxy
	for _, n := range s.nodes {
		p := servers.NewProxy(t, n.Addr())
		proxies, addrs = append(proxies, p), append(addrs, p.Addr())
	}
	d := openAt(ctx, t, strings.Join(addrs, ","))
	s.proxies[d] = proxies
	return d
}

func openAt(ctx context.Context, t *testing.T, hosts string) *Driver {
	t.Helper()
	name := t.Name()
	name = name[max(0, len(name)-maxPrefix+1):] // the end says which behaviour it is
	u := "etcd://" + hosts + "?prefix=" + url.QueryEscape(name+"/")
	d, err := driver.DefaultMux.Open(ctx, u, driver.Config{Lease: sessionTime})
	if err != nil {
		t.Fatal(err)
	}
	return d.(*Driver)
}

// vanish does as kill -9: nothing is given back, and what is under way ends.
func (d *Driver) vanish() {
	d.mu.Lock()
	d.closed = true
	d.current = nil
	clear(d.entries)
	d.mu.Unlock()
	d.stop()
	d.calls.Wait()
	d.background.Wait()
	_ = d.closeClient()
}

func TestConformance(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	s := &suiteEtcd{nodes: []*servers.EtcdNode{servers.EtcdServer(t, nil)}}
	drivertest.Run(t, s.harness())
}

func TestConformance_ThreeNodes(t *testing.T) {
	longrun.Only(t)
	if drivertest.Apart(t) {
		return
	}
	// The suite ends no node, so a leader that is late with its signs of life, on a busy
	// machine, is to stay the leader.
	patient := []string{"--heartbeat-interval", "250", "--election-timeout", "5000"}
	s := &suiteEtcd{nodes: servers.EtcdCluster(t, 3, &servers.EtcdOptions{Args: patient}).Nodes()}
	h := s.harness()
	h.Unlisted = true
	drivertest.Run(t, h)
}
