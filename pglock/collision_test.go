package pglock

import (
	"errors"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
)

// colliding gives all names the same few numbers, one after the other.
func colliding(table string, _ driver.Key, probe int) int64 {
	return hash(table, driver.Key{}, 0) + int64(probe)
}

// openColliding opens a driver for which every two names collide.
func openColliding(t testing.TB, n *servers.PostgresNode, table string) *Driver {
	t.Helper()
	o := Options{Table: table, Timeout: 5 * time.Second}
	checked, err := o.withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	d, err := start(t.Context(), configOf(t, n.Addr()), checked, colliding)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return d
}

func TestNames_WithTheSameNumber_AreLocksOfTheirOwn(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	a, b := openColliding(t, n, table), openColliding(t, n, table)
	x, y, z := request("x", "1"), request("y", "2"), request("z", "3")
	gx := acquire(t, a, x)
	acquire(t, a, y) // the same client, which knows itself of x
	acquire(t, b, z) // another, which learns it from the row
	for _, again := range []*driver.Request{request("x", "4"), request("y", "5"), request("z", "6")} {
		again.Try = true
		var held *driver.HeldError
		if _, err := b.Acquire(t.Context(), again); !errors.As(err, &held) || held.Name != again.Name ||
			held.Token == 0 {
			t.Errorf("a try of %s, which is held, says %v", again.Name, err)
		}
	}
	for info, err := range b.Locks(t.Context(), "") {
		if err != nil || len(info.Holders) != 1 {
			t.Errorf("a lock is listed as %+v, %v", info, err)
		}
	}
	if err := b.Break(t.Context(), x.Key, gx.Token); err != nil {
		t.Errorf("break: %v", err)
	}
	release(t, a, y)
	release(t, b, z)
	for _, name := range []string{"z", "y", "x"} { // the rows are there, and lead everybody the same way
		free := request(name, "free "+name)
		free.Try = true
		acquire(t, b, free)
		release(t, b, free)
	}
}

func TestNames_WithTheSameNumber_AreWaitedForApart(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	a, b := openColliding(t, n, table), openColliding(t, n, table)
	x, y := request("x", "1"), request("y", "2")
	acquire(t, a, x)
	acquire(t, a, y)
	got := make(chan error, 1)
	told := make(chan struct{}, 4)
	waits := request("y", "3")
	waits.Waiting = func(*driver.HeldError) { told <- struct{}{} }
	go func() { // ends when y is released
		_, err := b.Acquire(t.Context(), waits)
		got <- err
	}()
	<-told
	release(t, a, y)
	if err := <-got; err != nil {
		t.Error(err)
	}
	release(t, b, waits)
	release(t, a, x)
}

func TestPinnedRows_AreNotRemoved(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	d := openColliding(t, n, table)
	for _, r := range []*driver.Request{request("x", "1"), request("y", "2"), request("z", "3")} {
		acquire(t, d, r)
		release(t, d, r)
	}
	ops := newAdmin(t, n)
	ops.query("UPDATE %s SET token = token - 200000000000, last = last - 200000000000", table)
	prune(t, d)
	if got := ops.one("SELECT string_agg(convert_from(name, 'UTF8'), ' ' ORDER BY name) FROM %s", table); got != "x y" {
		t.Errorf("the rows of %q are left, want x and y: z has led nobody on", got)
	}
	y := request("y", "4")
	acquire(t, d, y)
	if got := ops.one("SELECT convert_from(name, 'UTF8') FROM %s WHERE key = %d", table,
		colliding(table, y.Key, 1)); got != "y" {
		t.Errorf("the second number is that of %q, want y", got)
	}
}

// crowded has so few numbers that names often collide.
func crowded(table string, key driver.Key, probe int) int64 { return hash(table, key, probe) & 0x3ff }

func TestConformance_WithCollisions(t *testing.T) {
	longrun.Only(t)
	if drivertest.Apart(t) {
		return
	}
	n := sharedServer(t)
	o, err := (&Options{Table: ownTable(), Timeout: testTimeout, Waits: 4, Shared: 2}).withDefaults()
	if err != nil {
		t.Fatal(err)
	}
	h := conformance(n, o)
	h.hash = crowded
	drivertest.Run(t, h.harness(true))
}
