package mysqllock

import (
	"context"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
)

// testTimeout is what the conformance suite asks for: short, because the suite waits for its end, and longer than a
// loaded machine lets a process stand still, with the third after which a sign of life is given.
const testTimeout = 4 * time.Second

func TestConformance(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	drivertest.Run(t, conformance(sharedServer(t), Options{Timeout: testTimeout}))
}

// With one connection for waits, further ones ask again and again, and the order of coming is lost.
func TestConformance_OneConnectionForWaits(t *testing.T) {
	longrun.Only(t)
	if drivertest.Apart(t) {
		return
	}
	h := conformance(sharedServer(t), Options{Timeout: testTimeout, Waits: 1, Shared: 1})
	h.Unlisted = true
	drivertest.Run(t, h)
}

// conformance is the harness for clients that each have a network of their own.
func conformance(n *servers.MariaDBNode, o Options) drivertest.Harness {
	var mu sync.Mutex
	networks := make(map[driver.Driver]*servers.Proxy)
	of := func(d driver.Driver) *servers.Proxy {
		mu.Lock()
		defer mu.Unlock()
		return networks[d]
	}
	return drivertest.Harness{
		Open: func(ctx context.Context, t *testing.T) driver.Driver {
			p := servers.NewProxy(t, n.Addr())
			d := open(ctx, t, p.Addr(), o)
			mu.Lock()
			defer mu.Unlock()
			networks[d] = p
			return d
		},
		Crash: func(_ *testing.T, d driver.Driver) { d.(*Driver).core.Crash() },
		Pause: func(_ *testing.T, d driver.Driver) func() {
			of(d).BlackHole(servers.BothWays)
			return of(d).Pass
		},
		Hang: func(t *testing.T) func() {
			stand(t, n)
			return n.Cont
		},
		Lease: testTimeout, Patience: 15 * time.Second,
		Keeps: []string{"internal/servers."},
	}
}

// stand makes a server stand still. On a loaded machine its threads go on for a moment after the signal.
func stand(t testing.TB, n *servers.MariaDBNode) {
	t.Helper()
	n.Stop()
	soon(t, "the server to stand still", func() bool { return !greets(n.Addr()) })
}

// greets reports whether a server says something to who connects.
func greets(addr string) bool {
	c, err := net.DialTimeout("tcp", addr, time.Second)
	if err != nil {
		return false
	}
	defer c.Close()
	_ = c.SetReadDeadline(time.Now().Add(50 * time.Millisecond)) // it is open
	_, err = c.Read(make([]byte, 1))
	return err == nil
}

// open opens a driver on the server at addr.
func open(ctx context.Context, t testing.TB, addr string, o Options) *Driver {
	t.Helper()
	d, err := New(ctx, configOf(addr), &o)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// configOf is that of the test's servers.
func configOf(addr string) *mysql.Config {
	c := mysql.NewConfig()
	c.User, c.Net, c.Addr, c.DBName = "root", "tcp", addr, servers.MariaDBDatabase
	return c
}
