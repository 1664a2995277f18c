package mysqllock

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit/sqlsession"
	"github.com/interlock-go/interlock/internal/servers"
)

const tokenTable = servers.MariaDBDatabase + ".interlock"

// grantOf acquires a mutex, looks at the grant and gives it back.
func grantOf(t *testing.T, d *Driver, name string, tokens int) driver.Grant {
	t.Helper()
	key := driver.Key{Kind: driver.KindMutex, Name: name}
	id := fmt.Sprint(name, time.Now().UnixNano())
	g, err := d.Acquire(patient(t), &driver.Request{Key: key, ID: id, Tokens: tokens})
	if err != nil {
		t.Fatal(err)
	}
	if err := d.Release(patient(t), &driver.Release{Key: key, ID: id}); err != nil {
		t.Fatal(err)
	}
	return g
}

// waitedGrantOf is grantOf for a lock that has to be waited for.
func waitedGrantOf(t *testing.T, d *Driver, name string, tokens int) driver.Grant {
	t.Helper()
	key := driver.Key{Kind: driver.KindMutex, Name: name}
	held, waited := fmt.Sprint("held ", time.Now().UnixNano()), fmt.Sprint("waited ", time.Now().UnixNano())
	if _, err := d.Acquire(patient(t), &driver.Request{Key: key, ID: held, Tokens: 1}); err != nil {
		t.Fatal(err)
	}
	told := make(chan struct{}, 8)
	got := make(chan driver.Grant, 1)
	go func() { // ends with the grant
		g, err := d.Acquire(context.Background(), &driver.Request{
			Key: key, ID: waited, Tokens: tokens, Waiting: func(*driver.HeldError) { told <- struct{}{} },
		})
		if err != nil {
			t.Error(err)
		}
		got <- g
	}()
	receive(t, "the wait to begin", told)
	if err := d.Release(patient(t), &driver.Release{Key: key, ID: held}); err != nil {
		t.Fatal(err)
	}
	g := receive(t, "the grant", got)
	if err := d.Release(patient(t), &driver.Release{Key: key, ID: waited}); err != nil {
		t.Fatal(err)
	}
	return g
}

func TestToken_IsTheServersClock_OrOneMoreThanTheLast(t *testing.T) {
	n := sharedServer(t)
	a := newAdmin(t, n)
	d := open(context.Background(), t, n.Addr(), Options{})
	defer d.Close()
	for what, grant := range map[string]func(*testing.T, *Driver, string, int) driver.Grant{
		"tried":  grantOf,
		"waited": waitedGrantOf,
	} {
		begin := a.number("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)")
		g := grant(t, d, what, 16)
		end := a.number("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)")
		if int64(g.Token) < begin || int64(g.Token) > end+1_000_000 || g.Tokens != 16 {
			t.Errorf("%s: token %d (%d of them), with the server's clock from %d to %d", what, g.Token, g.Tokens, begin,
				end)
		}
		// As after a failover to a server whose clock is an hour behind.
		ahead := end + 3600_000_000
		a.exec(fmt.Sprintf("UPDATE %s SET token = %d, last = %d WHERE name = '%s'", tokenTable, ahead-7, ahead, what))
		for i := range uint64(3) {
			if g := grantOf(t, d, what, 16); g.Token != uint64(ahead)+1+i || g.Tokens != 1 {
				t.Errorf("%s: with tokens ahead of the clock the grant has token %d (%d of them), want %d and no block",
					what, g.Token, g.Tokens, uint64(ahead)+1+i)
			}
		}
	}
}

// A server that begins again with an empty table has only the clock.
func TestToken_GrowsOverAnEmptyTable(t *testing.T) {
	n := sharedServer(t)
	d := open(context.Background(), t, n.Addr(), Options{})
	defer d.Close()
	first := grantOf(t, d, "emptied", 1)
	newAdmin(t, n).exec("DELETE FROM " + tokenTable + " WHERE name = 'emptied'")
	if second := grantOf(t, d, "emptied", 1); second.Token <= first.Token {
		t.Errorf("token %d after %d", second.Token, first.Token)
	}
}

// Old rows go although no client lives for as long as the pauses between its looks.
func TestGrants_HaveOldRowsRemoved(t *testing.T) {
	n := sharedServer(t)
	a := newAdmin(t, n)
	const table = servers.MariaDBDatabase + ".granted"
	d := open(context.Background(), t, n.Addr(), Options{Table: "granted"})
	defer d.Close()
	a.exec(fmt.Sprintf("INSERT INTO %s SELECT RANDOM_BYTES(30), 'mutex', 'old', 1, 1, '', '', '', 1, 1 "+
		"FROM seq_1_to_%d", table, chunk-100))
	for range 256 {
		grantOf(t, d, "young", 1)
	}
	soon(t, "old rows to be removed", func() bool { return a.number("SELECT COUNT(*) FROM "+table) == 1 })
}

func TestPrune_RemovesRowsThatNobodyHasUsedForADay_AndNoOthers(t *testing.T) {
	n := sharedServer(t)
	a := newAdmin(t, n)
	const table = servers.MariaDBDatabase + ".pruned"
	d := open(context.Background(), t, n.Addr(), Options{Table: "pruned"})
	defer d.Close()
	// More than one look takes in.
	a.exec(fmt.Sprintf("INSERT INTO %s SELECT RANDOM_BYTES(30), 'mutex', 'old', 1, 1, '', '', '', 1, 1 "+
		"FROM seq_1_to_%d", table, chunk+200))
	grantOf(t, d, "young", 1)
	key := driver.Key{Kind: driver.KindMutex, Name: "held"}
	if _, err := d.Acquire(patient(t), &driver.Request{Key: key, ID: "held for long", Tokens: 1}); err != nil {
		t.Fatal(err)
	}
	a.exec("UPDATE " + table + " SET last = 5 WHERE name = 'held'")
	for range 3 {
		pruned := make(chan struct{})
		d.core.OnShared(sqlsession.Job{
			Run:  func(c *sqlsession.Conn) { session(c).Prune(); close(pruned) },
			Dead: func(err error) { t.Error(err); close(pruned) },
		})
		receive(t, "the rows to be looked at", pruned)
	}
	if left := a.number("SELECT COUNT(*) FROM " + table); left != 2 {
		t.Errorf("%d rows are left, want those of the young and of the held lock", left)
	}
}
