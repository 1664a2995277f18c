package pglock

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/jackc/pgx/v5/pgconn"
)

// testTimeout is what the conformance suite asks for: short, because the suite waits for its end, and longer than a
// loaded machine lets a process stand still, with the third after which a sign of life is given.
const testTimeout = 4 * time.Second

func TestConformance(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	drivertest.Run(t, conformance(sharedServer(t), Options{Timeout: testTimeout}).harness(false))
}

// setting is a server with clients that each have a network of their own.
type setting struct {
	n    *servers.PostgresNode
	o    Options
	hash hasher

	mu       sync.Mutex // guards networks
	networks map[driver.Driver]*servers.Proxy
}

func conformance(n *servers.PostgresNode, o Options) *setting {
	return &setting{n: n, o: o, hash: hash, networks: make(map[driver.Driver]*servers.Proxy)}
}

func (s *setting) open(ctx context.Context, t *testing.T) driver.Driver {
	t.Helper()
	p := servers.NewProxy(t, s.n.Addr())
	o, err := s.o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	d, err := start(ctx, configOf(t, p.Addr()), o, s.hash)
	if err != nil {
		t.Fatal(err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.networks[d] = p
	return d
}

func (s *setting) network(d driver.Driver) *servers.Proxy {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.networks[d]
}

func (s *setting) harness(unlisted bool) drivertest.Harness {
	return drivertest.Harness{
		Open:  s.open,
		Crash: func(_ *testing.T, d driver.Driver) { d.(*Driver).core.Crash() },
		Pause: func(_ *testing.T, d driver.Driver) func() {
			p := s.network(d)
			p.BlackHole(servers.BothWays)
			return p.Pass
		},
		Hang: func(*testing.T) func() {
			s.n.Stop()
			return s.n.Cont
		},
		Lease: testTimeout, Patience: 15 * time.Second,
		Keeps: []string{"internal/servers."}, Unlisted: unlisted,
	}
}

// open opens a driver on the server at addr.
func open(ctx context.Context, t testing.TB, addr string, o Options) *Driver {
	t.Helper()
	d, err := New(ctx, configOf(t, addr), &o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// configOf is that of the test's servers.
func configOf(t testing.TB, addr string) *pgconn.Config {
	t.Helper()
	c, err := pgconn.ParseConfig("postgres://postgres@" + addr + "/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	return c
}
