package redislock

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/internal/rueidisconn"
	"github.com/redis/rueidis"
)

func TestConformance(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	s := servers.RedisServer(t, nil)
	drivertest.Run(t, drivertest.Harness{
		Open: func(_ context.Context, t *testing.T) driver.Driver {
			return open(t, rueidis.ClientOption{InitAddress: []string{s.Addr()}}, nil)
		},
		Hang: hang(s),
	})
}

// hang returns what makes a server hang.
func hang(n *servers.RedisNode) func(*testing.T) func() {
	return func(*testing.T) func() {
		n.Stop()
		return n.Cont
	}
}

// A Conn whose pushes come over another connection has to confirm each of them.
func TestConformance_PushesOverAnotherConnection(t *testing.T) {
	longrun.Only(t)
	if drivertest.Apart(t) {
		return
	}
	addr := servers.Redis(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(ctx context.Context, t *testing.T) driver.Driver {
			d, err := start(ctx, newPlainConn(dial(t, rueidis.ClientOption{InitAddress: []string{addr}})), nil)
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Unlisted: true,
	})
}

// open returns a driver over a client of its own, which it closes.
func open(t testing.TB, o rueidis.ClientOption, opts *Options) *Driver {
	t.Helper()
	d, err := start(context.Background(), rueidisconn.New(dial(t, o), true), opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func dial(t testing.TB, o rueidis.ClientOption) rueidis.Client {
	t.Helper()
	o.DisableCache = true
	client, err := rueidis.NewClient(o)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// A URL makes the driver connect by itself.
func TestConformance_URL(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	addr := servers.Redis(t)
	drivertest.Run(t, drivertest.Harness{
		Open: func(ctx context.Context, t *testing.T) driver.Driver {
			d, err := driver.DefaultMux.Open(ctx, "redis://"+addr+"?check=none", driver.Config{})
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		// The other runs have the dead fall silent. Here the server hears of the end of their connections, so that it
		// sees that a push reaches nobody.
		Crash:    func(_ *testing.T, d driver.Driver) { _ = d.(*Driver).conn.Close() },
		Unlisted: true,
	})
}
