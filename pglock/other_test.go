package pglock

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/jackc/pgx/v5/pgconn"
)

// twoServers is a configuration with two servers, as a URL with two hosts makes it.
func twoServers(t *testing.T, first, second *servers.Proxy) *pgconn.Config {
	t.Helper()
	config, err := pgconn.ParseConfig("postgres://postgres@" + first.Addr() + "," + second.Addr() +
		"/postgres?sslmode=disable&target_session_attrs=read-write")
	if err != nil {
		t.Fatal(err)
	}
	return config
}

// Of two servers that can both be written to each would grant the lock. A client does not go over to the second while
// the first answers, and does when that is gone.
func TestSecondServer_OfTheURL_IsRefusedUntilTheFirstIsGone(t *testing.T) {
	first, second := servers.PostgresServer(t, nil), sharedServer(t)
	near := servers.NewProxy(t, first.Addr())
	d, err := New(t.Context(), twoServers(t, near, servers.NewProxy(t, second.Addr())), &Options{Table: ownTable()})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	before := acquire(t, d, request("x", "1"))
	near.Refuse() // further connections alone
	if c, err := (dialect{d}).Dial(t.Context(), true); !errors.Is(err, errOtherServer) {
		t.Errorf("a connection to the other server: %v, %v", c, err)
	}
	other := open(t.Context(), t, second.Addr(), Options{Table: d.opts.Table}) // makes the tables, which a standby has
	defer func() { _ = other.Close() }()
	first.Kill()
	_ = d.Release(t.Context(), &driver.Release{Key: request("x", "1").Key, ID: "1"}) // lost, or nobody knows
	if after := acquire(t, d, request("x", "2")); after.Token <= before.Token {
		t.Errorf("token %d after %d", after.Token, before.Token)
	}
}

// A server that has vanished without a word is not in the way of its successor until the timeout.
func TestSecondServer_OfTheURL_IsTakenSoonWhenTheFirstIsMute(t *testing.T) {
	first, second := servers.PostgresServer(t, nil), sharedServer(t)
	near := servers.NewProxy(t, first.Addr())
	d, err := New(t.Context(), twoServers(t, near, servers.NewProxy(t, second.Addr())),
		&Options{Table: ownTable(), Timeout: 4 * patience})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = d.Close() }()
	near.BlackHole(servers.BothWays)
	near.Refuse()
	until(t, patience, func() error {
		c, err := dialect{d}.Dial(t.Context(), true)
		if err == nil {
			c.Kill()
		}
		return err
	})
}
