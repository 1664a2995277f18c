package pglock

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// What docs/limits/postgres.md says of a missing standby, and of indexes that are built beside waiters.

func TestMissingStandby_KeepsTheLockOfAClientThatHasEnded(t *testing.T) {
	n := servers.PostgresServer(t, &servers.PostgresOptions{
		Config: map[string]string{"max_wal_senders": "2", "wal_level": "replica"},
	})
	ops := newAdmin(t, n)
	ops.query("SET synchronous_commit = local")
	d := open(t.Context(), t, n.Addr(), Options{Timeout: timeout, Shared: 1})
	defer func() { _ = d.Close() }()
	standby := func(name string) {
		ops.query("ALTER SYSTEM SET synchronous_standby_names = '%s'", name)
		ops.query("SELECT pg_reload_conf()")
		until(t, patience, func() error { return want(ops.one("SHOW synchronous_standby_names"), name) })
	}
	standby("missing")
	const hangs = "SELECT count(*) FROM pg_stat_activity a JOIN pg_locks l USING (pid) " +
		"WHERE a.wait_event = 'SyncRep' AND l.locktype = 'advisory'"
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	got := make(chan error, 1)
	// The server's checkpointer hears of the standby after the sessions have, and until then nothing waits for it.
	// Locks that are granted by then are given back. Were one granted later, nothing would ever hang.
	go func() { // ends with ctx
		var err error
		for i := 0; err == nil; i++ {
			r := request("x", fmt.Sprint("early ", i))
			if _, err = d.Acquire(ctx, r); err == nil {
				err = d.Release(ctx, &driver.Release{Key: r.Key, ID: r.ID})
			}
		}
		got <- err
	}()
	until(t, patience, func() error { return want(ops.one(hangs), "1") })
	d.core.Crash() // as the end of the process
	cancel()
	<-got
	// Longer than any timer of the session lasts, by the server's own clock.
	ops.query("SELECT pg_sleep(%f)", timeout.Seconds()+1)
	if err := want(ops.one(hangs), "1"); err != nil {
		t.Error("sessions that wait for the standby and have the lock: ", err)
	}
	ops.query("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE wait_event = 'SyncRep'")
	until(t, patience, func() error { return want(ops.one(hangs), "0") })
	standby("")
	other := open(t.Context(), t, n.Addr(), Options{Timeout: timeout})
	defer func() { _ = other.Close() }()
	acquire(t, other, request("x", "2"))
}

func TestIndexBuiltConcurrently_WaitsForTheSliceOfAWaiter(t *testing.T) {
	n := sharedServer(t)
	table, ops, watch := ownTable(), newAdmin(t, n), newAdmin(t, n)
	holds := open(t.Context(), t, n.Addr(), Options{Table: table})
	defer func() { _ = holds.Close() }()
	waits := open(t.Context(), t, n.Addr(), Options{Table: table, Slice: patience})
	defer func() { _ = waits.Close() }()
	ops.query("CREATE TABLE goods_%s (id int)", table)
	acquire(t, holds, request("x", "1"))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	waited := make(chan error, 1)
	go func() { // ends with ctx
		_, err := waits.Acquire(ctx, request("x", "2"))
		waited <- err
	}()
	const waiting = "SELECT count(*) FROM pg_locks WHERE locktype = '%s' AND NOT granted"
	until(t, patience, func() error { return want(watch.one(waiting, "advisory"), "1") })
	built := make(chan struct{})
	go func() { // ends when the wait has ended
		defer close(built)
		ops.query("CREATE INDEX CONCURRENTLY ON goods_%s (id)", table)
	}()
	until(t, patience, func() error { return want(watch.one(waiting, "virtualxid"), "1") })
	cancel()
	if err := <-waited; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
	undo := request("x", "2")
	withdraw(t, waits, undo)
	<-built
}

// withdraw undoes a request whose caller has given up, as the library does.
func withdraw(t *testing.T, d *Driver, r *driver.Request) {
	t.Helper()
	if err := d.Release(t.Context(), &driver.Release{Key: r.Key, ID: r.ID, Undo: true, Horizon: patience}); err != nil {
		t.Error(err)
	}
}
