package pglock

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// tokenOf is what the row of x says.
func (a *admin) number(text string, args ...any) int64 {
	a.t.Helper()
	n, err := strconv.ParseInt(a.one(text, args...), 10, 64)
	if err != nil {
		a.t.Fatal(err)
	}
	return n
}

func TestToken_IsTheServersClockOrOneMore_AndIsThereBeforeTheGrant(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	d := open(t.Context(), t, n.Addr(), Options{Table: table})
	defer func() { _ = d.Close() }()
	ops := newAdmin(t, n)
	before := ops.number("SELECT (extract(epoch FROM clock_timestamp()) * 1000000)::bigint")
	r := request("x", "1")
	r.Tokens = 17
	g := acquire(t, d, r)
	if row := ops.number("SELECT token FROM %s", table); uint64(row) != g.Token || row < before || g.Tokens != 17 {
		t.Errorf("the grant has token %d of %d, the row %d, and the clock was %d before", g.Token, g.Tokens, row,
			before)
	}
	release(t, d, r)

	// A clock that is far behind the last token, as after a failover to a server whose clock is slow: the token grows
	// by one, and there is no block.
	ops.query("UPDATE %s SET token = 4000000000000000, last = 4000000000000016", table)
	for i := range 3 {
		r := request("x", fmt.Sprint("late ", i))
		r.Tokens = 17
		g := acquire(t, d, r)
		if want := uint64(4000000000000017 + i); g.Token != want || g.Tokens != 1 {
			t.Errorf("with a slow clock the token is %d of %d, want %d of 1", g.Token, g.Tokens, want)
		}
		release(t, d, r)
	}
}

func TestPrune_RemovesWhatNobodyHasUsedForADay(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	d := open(t.Context(), t, n.Addr(), Options{Table: table})
	defer func() { _ = d.Close() }()
	ops := newAdmin(t, n)
	old, held, young := request("old", "1"), request("held", "2"), request("young", "3")
	for _, r := range []*driver.Request{old, held, young} {
		acquire(t, d, r)
	}
	release(t, d, old)
	release(t, d, young)
	ops.query("UPDATE %s SET token = token - 90000000000, last = last - 90000000000 WHERE name <> 'young'", table)
	prune(t, d)
	if got := ops.one("SELECT string_agg(convert_from(name, 'UTF8'), ' ' ORDER BY name) FROM %s",
		table); got != "held young" {
		t.Errorf("the rows of %q are left, want held and young", got)
	}
	again := request("old", "4")
	acquire(t, d, again)
	release(t, d, again)
	release(t, d, held)
}

// Old rows go although no client lives for as long as the pauses between its looks.
func TestGrants_HaveOldRowsRemoved(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	d := open(t.Context(), t, n.Addr(), Options{Table: table})
	defer func() { _ = d.Close() }()
	ops := newAdmin(t, n)
	ops.query(`INSERT INTO %[1]s (key, kind, name, token, last, nonce, owner, client, label, since, pid)
		SELECT 4000000000000000000 - i * 9000000000000000, 'mutex', 'old', 1, 1, '', '', '', '', 'epoch', 1 FROM generate_series(1, 900) i`, table)
	ops.query(`INSERT INTO %s_readers (pid, key, token, last, owner, client, label, since)
		SELECT i, i, 1, 1, '', '', '', 'epoch' FROM generate_series(1, 900) i`, table)
	ops.query("INSERT INTO %s_waits (pid, key, owner, client, label) SELECT i, i, '', '', '' FROM "+
		"generate_series(10000000, 10000899) i", table)
	ops.query("INSERT INTO %s_breaks (pid, key, token, asked) SELECT i, i, 1, 'epoch' FROM generate_series(1, 900) i",
		table)
	for i := range 256 {
		r := request("young", fmt.Sprint(i))
		acquire(t, d, r)
		release(t, d, r)
	}
	until(t, patience, func() error {
		return want(ops.one("SELECT count(*) FROM (SELECT pid FROM %[1]s UNION ALL SELECT pid FROM %[1]s_readers "+
			"UNION ALL "+
			"SELECT pid FROM %[1]s_waits UNION ALL SELECT pid FROM %[1]s_breaks) all_rows", table), "1")
	})
}

// A look at a table costs the same however many rows there are.
func TestPrune_LooksAtSomeRowsAlone(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	d := open(t.Context(), t, n.Addr(), Options{Table: table})
	defer func() { _ = d.Close() }()
	ops := newAdmin(t, n)
	const rows = 20000
	ops.query(`INSERT INTO %[1]s (key, kind, name, token, last, nonce, owner, client, label, since, pid)
		SELECT i * 400000000000000, 'mutex', 'old', 1, 1, '', '', '', '', 'epoch', 1 FROM generate_series(%d, %d) i`,
		table, -rows/2, rows/2-1)
	ops.query(`INSERT INTO %s_readers (pid, key, token, last, owner, client, label, since)
		SELECT i / 100, i, 1, 1, '', '', '', 'epoch' FROM generate_series(1, %d) i`, table, rows)
	ops.query("INSERT INTO %s_waits (pid, key, owner, client, label) SELECT i, i, '', '', '' FROM "+
		"generate_series(100000, 100000 + %d) i", table, rows)
	// As a server's autovacuum does by itself: PostgreSQL 18 takes a table of which it knows nothing for a small one.
	for _, of := range []string{"", "_readers", "_waits"} {
		ops.query("ANALYZE %s%s", table, of)
	}
	for i, text := range pruneTexts {
		if most := mostRows(t, ops, strings.ReplaceAll(d.text(text), "$1", "42")); most > 1000 {
			t.Errorf("look %d took in %d rows, want a thousand", i, most)
		}
	}
	if left := ops.number("SELECT count(*) FROM %s", table); left != rows-1000 {
		t.Errorf("%d rows of locks are left, want a thousand less than %d", left, rows)
	}
	if left := ops.number("SELECT count(*) FROM %s_readers", table); left != rows-1000 {
		t.Errorf("%d rows of readers are left, want a thousand less than %d", left, rows)
	}
}

// The server ends a session that gives no sign of life, and so frees its locks, by its own clock.
func TestSession_IsSetUpSoThatTheServerEndsIt(t *testing.T) {
	n := sharedServer(t)
	d := open(t.Context(), t, n.Addr(), Options{Table: ownTable(), Timeout: 6 * time.Second})
	defer func() { _ = d.Close() }()
	for name, want := range map[string]string{
		"idle_session_timeout": "6s", "tcp_user_timeout": "6000", "tcp_keepalives_idle": "2",
		"client_connection_check_interval": "2s",
		"statement_timeout":                "0", "default_transaction_isolation": "read committed",
		"synchronous_commit": "on",
	} {
		found, err := d.query(t.Context(), "SELECT current_setting('"+name+"')")
		if err != nil || string(found[0][0]) != want {
			t.Errorf("%s is %s (%v), want %s", name, found, err, want)
		}
	}
}

func TestDoctor_SeesWhatIsWrong(t *testing.T) {
	n := sharedServer(t)
	d := open(t.Context(), t, n.Addr(), Options{Table: ownTable(), Waits: 1000})
	defer func() { _ = d.Close() }()
	levels := map[string]driver.Level{}
	for _, f := range d.Diagnose(t.Context()) {
		levels[f.Check] = f.Level
		if f.Level != driver.LevelOK && f.Advice == "" {
			t.Errorf("there is no advice with %+v", f)
		}
	}
	for check, want := range map[string]driver.Level{
		"tokens": driver.LevelWarn, "connections": driver.LevelWarn, // the test's server does not wait for its disk
		"version": driver.LevelOK, "pooler": driver.LevelOK, "role": driver.LevelOK, "locks": driver.LevelOK,
		"crowds":     driver.LevelOK,
		"round trip": driver.LevelOK,
	} {
		if levels[check] != want {
			t.Errorf("%s is %q, want %q", check, levels[check], want)
		}
	}
	if f := judgeRole(facts{standby: true}); f.Level != driver.LevelFail {
		t.Errorf("a standby is %+v", f)
	}
}

// A role that may only use the tables can lock, and is told what it may not.
func TestRole_WithFewRights_CanLock(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	first := open(t.Context(), t, n.Addr(), Options{Table: table}) // makes the tables
	_ = first.Close()
	ops := newAdmin(t, n)
	ops.query("CREATE ROLE few LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON %[1]s, %[1]s_waits, %[1]s_breaks, "+
		"%[1]s_readers TO few", table)
	config := configOf(t, n.Addr())
	config.User = "few"
	a, err := New(t.Context(), config, &Options{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = a.Close() }()
	b, err := New(t.Context(), config, &Options{Table: table})
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = b.Close() }()
	x, y := request("x", "1"), request("x", "2")
	acquire(t, a, x)
	told := make(chan struct{}, 4)
	y.Waiting = func(*driver.HeldError) { told <- struct{}{} }
	got := make(chan error, 1)
	go func() { // ends when x is released
		_, err := b.Acquire(t.Context(), y)
		got <- err
	}()
	<-told
	release(t, a, x)
	if err := <-got; err != nil {
		t.Fatal(err)
	}
	release(t, b, y)
	for _, f := range a.Diagnose(t.Context()) {
		if f.Check == "crowds" && f.Level != driver.LevelWarn {
			t.Errorf("the role may not set deadlock_timeout, and the doctor says %+v", f)
		}
	}
	config.User = "nobody"
	ops.query("CREATE ROLE nobody LOGIN")
	if _, err := New(t.Context(), config, &Options{Table: ownTable()}); stateOf(err) != stateNoRight {
		t.Errorf("without the right to make tables New says %v", err)
	}
}
