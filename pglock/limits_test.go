package pglock

import (
	"context"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
)

// What docs/limits/postgres.md says of the server, as far as a server shows it.

// CREATE INDEX CONCURRENTLY waits for every statement that began before it, of whatever table.
func TestAWait_HoldsUpCreateIndexConcurrently(t *testing.T) {
	n := sharedServer(t)
	ops, builder := newAdmin(t, n), newAdmin(t, n)
	table := ownTable()
	ops.query("CREATE TABLE %s_data (x int)", table)
	c := client(t, n.Addr(), "&table="+table, 0)
	held := lock(t, c, "x")
	ctx, giveUp := context.WithCancel(t.Context())
	defer giveUp()
	waits := make(chan error, 1)
	other := client(t, n.Addr(), "&table="+table, 0)
	go func() { // ends with ctx
		_, err := other.Lock(ctx, "x")
		waits <- err
	}()
	const advisory = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
	until(t, patience, func() error { return want(ops.one(advisory), "1") })
	built := make(chan struct{})
	go func() { // ends with the wait
		defer close(built)
		builder.query("CREATE INDEX CONCURRENTLY ON %s_data (x)", table)
	}()
	until(t, patience, func() error {
		return want(ops.one("SELECT count(*) FROM pg_stat_activity b JOIN pg_locks w ON w.pid = ANY(pg_blocking_pids(b.pid)) "+
			"WHERE b.query LIKE 'CREATE INDEX CONCURRENTLY ON %s_data%%' AND w.locktype = 'advisory' AND NOT w.granted", table), "1")
	})
	giveUp()
	if err := <-waits; err == nil {
		t.Error("the wait has got the lock")
	}
	<-built
	unlock(t, held)
}

// A commit that waits for a standby does not look whether its client is still there.
func TestAGrantThatWaitsForAStandby_KeepsItsLockWhenTheClientIsGone(t *testing.T) {
	n := servers.PostgresServer(t, &servers.PostgresOptions{
		Config: map[string]string{"max_wal_senders": "2", "wal_level": "replica"},
	})
	ops := newAdmin(t, n)
	p := servers.NewProxy(t, n.Addr())
	d := open(t.Context(), t, p.Addr(), Options{})
	acquire(t, d, request("before", "1"))
	ops.query("ALTER SYSTEM SET synchronous_standby_names = 'nobody'")
	ops.query("SELECT pg_reload_conf()")
	until(t, patience, func() error { return want(ops.one("SHOW synchronous_standby_names"), "nobody") })
	ctx, cancel := context.WithCancel(t.Context())
	asked := make(chan error, 1)
	go func() { // ends with ctx, once a grant waits: the server heeds the setting a moment after it shows it
		var err error
		for n := 2; err == nil; n++ {
			r := request(fmt.Sprint("x", n), fmt.Sprint(n))
			_, err = d.Acquire(ctx, r)
		}
		asked <- err
	}()
	const waits = "SELECT count(*) FROM pg_stat_activity WHERE wait_event = 'SyncRep'"
	until(t, patience, func() error { return want(ops.one(waits), "1") })
	p.Refuse()
	p.Reset() // as if the process had been killed: the server hears the end of the connection, and nothing more
	cancel()
	<-asked
	_ = d.Close()
	const held = "SELECT count(*) FROM pg_locks l JOIN pg_stat_activity a USING (pid) WHERE l.locktype = 'advisory' AND " +
		"l.granted AND a.wait_event = 'SyncRep'"
	// The other sessions of the client have ended by now, so the server has heard of its end.
	until(t, patience, func() error {
		return want(ops.one("SELECT count(*) FROM pg_stat_activity WHERE backend_type = 'client backend' AND "+
			"wait_event IS DISTINCT FROM 'SyncRep' AND pid <> pg_backend_pid()"), "0")
	})
	if got := ops.one(held); got == "0" {
		t.Errorf("the session has %s locks", got)
	}
	ops.query("ALTER SYSTEM RESET synchronous_standby_names")
	ops.query("SELECT pg_reload_conf()")
	until(t, patience, func() error { return want(ops.one(held), fmt.Sprint(0)) })
}
