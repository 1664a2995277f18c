package mysqllock

import (
	"context"
	"errors"
	"net"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
)

// One address in front of two servers would let two clients have one lock.
func TestSecondServer_BehindTheSameAddress_IsRefusedUntilTheFirstIsGone(t *testing.T) {
	first, second := servers.MariaDBServer(t, nil), sharedServer(t)
	var failedOver atomic.Bool
	config := configOf(first.Addr())
	config.DialFunc = func(ctx context.Context, network, _ string) (net.Conn, error) {
		addr := first.Addr()
		if failedOver.Load() {
			addr = second.Addr()
		}
		return new(net.Dialer).DialContext(ctx, network, addr)
	}
	d, err := New(patient(t), config, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	before := grantOf(t, d, "failover", 1)
	failedOver.Store(true)
	if c, err := (dialect{d}).Dial(patient(t), true); !errors.Is(err, errOtherServer) {
		t.Errorf("a connection to another server: %v, %v", c, err)
	}
	first.Kill()
	soon(t, "the connection to end", func() bool {
		return d.core.Connections() == 0
	})
	openLocks(t, urlOf(second.Addr()), nil) // makes the tables, which a replica has
	if after := grantOf(t, d, "failover", 1); after.Token <= before.Token {
		t.Errorf("token %d after %d", after.Token, before.Token)
	}
}
