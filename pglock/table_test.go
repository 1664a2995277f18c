package pglock

import (
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
)

// clientAs opens the library as a role.
func clientAs(t *testing.T, n *servers.PostgresNode, role, table string) *interlock.Client {
	t.Helper()
	c, err := interlock.Open(t.Context(), "postgres://"+role+"@"+n.Addr()+"/postgres?sslmode=disable&table="+table, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// driverAs opens a driver as a role.
func driverAs(t *testing.T, n *servers.PostgresNode, role string, o Options) (*Driver, error) {
	t.Helper()
	config := configOf(t, n.Addr())
	config.User = role
	d, err := New(t.Context(), config, &o)
	if err == nil {
		t.Cleanup(func() { _ = d.Close() })
	}
	return d, err
}

// One table, however it is named, keeps one set of locks.
func TestTable_NamedWithAndWithoutItsSchema_KeepsOneSetOfLocks(t *testing.T) {
	n := sharedServer(t)
	name := ownTable()
	a, b := client(t, n.Addr(), "&table="+name, calm), client(t, n.Addr(), "&table=public."+name, calm)
	l := lock(t, a, "x")
	if second, err := b.TryLock(t.Context(), "x"); !errors.Is(err, interlock.ErrHeld) {
		t.Errorf("two owners at once: %v, %v", second, err)
	}
	if err := b.Break(t.Context(), driver.KindMutex, "x", l.Token()); err != nil {
		t.Errorf("a break by who names the table otherwise: %v", err)
	}
	if lost := isLost(t, l, patience); lost.Reason != driver.LostBroken {
		t.Errorf("the hold was lost by %q", lost.Reason)
	}
	if rows := newAdmin(t, n).one("SELECT count(*) FROM %s", name); rows != "1" {
		t.Errorf("the lock has %s rows", rows)
	}
}

// Two tables, even if both clients call them the same, keep two sets: the tokens of one lock come from one row.
func TestTable_FoundInTheRolesOwnSchema_KeepsItsOwnLocks(t *testing.T) {
	n := sharedServer(t)
	name := ownTable()
	ops := newAdmin(t, n)
	ops.query(`CREATE ROLE ann LOGIN; CREATE SCHEMA ann AUTHORIZATION ann; ` +
		`CREATE ROLE "Bob-2" LOGIN; CREATE SCHEMA "Bob-2" AUTHORIZATION "Bob-2"`)
	ann, bob, written := clientAs(t, n, "ann", name), clientAs(t, n, "Bob-2", name), clientAs(t, n, "postgres", "ann."+
		name)
	first, second := lock(t, ann, "x"), lock(t, bob, "x")
	if _, err := written.TryLock(t.Context(), "x"); !errors.Is(err, interlock.ErrHeld) {
		t.Errorf("the lock of ann's table is held, and who writes the schema is told %v", err)
	}
	for schema, l := range map[string]*interlock.Lease{"ann": first, `"Bob-2"`: second} {
		if got := ops.one("SELECT token FROM %s.%s", schema, name); got != fmt.Sprint(l.Token()) {
			t.Errorf("the row in the table of %s has token %s, want %d", schema, got, l.Token())
		}
	}
	unlock(t, second)

	// What the role's path is set to later changes nothing for a client that goes on.
	ops.query("ALTER ROLE ann SET search_path = public; SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE " +
		"usename = 'ann'")
	isLost(t, first, patience)
	unlock(t, lock(t, ann, "x"))
	unlock(t, lock(t, written, "x"))

	for _, row := range []struct {
		table string
		level driver.Level
	}{{name, driver.LevelWarn}, {"ann." + name, driver.LevelOK}} {
		d, err := driverAs(t, n, "postgres", Options{Table: row.table})
		if err != nil {
			t.Fatal(err)
		}
		if f := finding(t, d, "table"); f.Level != row.level || row.level == driver.LevelWarn &&
			!strings.Contains(f.Detail, `"Bob-2", ann`) {
			t.Errorf("of the table %s, of which there are several, the doctor says %+v", row.table, f)
		}
	}
}

func finding(t *testing.T, d *Driver, check string) driver.Finding {
	t.Helper()
	for _, f := range d.Diagnose(t.Context()) {
		if f.Check == check {
			return f
		}
	}
	t.Fatalf("the doctor says nothing about %s", check)
	return driver.Finding{}
}

// Without a schema there is no table, and with something else in its place neither. Open says which.
func TestTable_ThatCannotBeFoundOrMade_IsADefiniteError(t *testing.T) {
	n := sharedServer(t)
	ops := newAdmin(t, n)
	ops.query("CREATE ROLE lost LOGIN; ALTER ROLE lost SET search_path = ''")
	if _, err := driverAs(t, n, "lost", Options{}); err == nil ||
		!strings.Contains(err.Error(), "write it as SCHEMA.interlock") {
		t.Errorf("without a schema New says %v", err)
	}
	_ = open(t.Context(), t, n.Addr(), Options{Table: "behind"}).Close() // makes the table
	for name, row := range map[string]struct{ text, says string }{
		"seen":  {"CREATE VIEW seen AS SELECT * FROM behind", "name the table itself"},
		"typed": {"CREATE TYPE typed AS ENUM ('a')", "something else of that name"},
		"later": {"CREATE TYPE later_breaks AS ENUM ('a')", "something else of that name"},
		"index": {"CREATE INDEX index_waits ON behind (token)", "no table"},
	} {
		ops.query("%s", row.text)
		before := ops.number("SELECT sum(xact_rollback) FROM pg_stat_database")
		_, err := driverAs(t, n, "postgres", Options{Table: name})
		if err == nil || !strings.Contains(err.Error(), row.says) {
			t.Errorf("after %s New says %v, want %q", row.text, err, row.says)
		}
		if failed := ops.number("SELECT sum(xact_rollback) FROM pg_stat_database") - before; failed > 100 {
			t.Errorf("after %s New failed %d times", row.text, failed)
		}
	}
}

// A role that lacks a right on any of the tables learns it at the start and from the doctor, and not when the right is
// needed.
func TestRights_ThatAreMissing_AreFound(t *testing.T) {
	n := sharedServer(t)
	ops, name := newAdmin(t, n), ownTable()
	_ = open(t.Context(), t, n.Addr(), Options{Table: name}).Close() // makes the tables
	ops.query("CREATE ROLE poor LOGIN; GRANT SELECT, INSERT, UPDATE, DELETE ON %[1]s, %[1]s_waits, %[1]s_breaks, "+
		"%[1]s_readers TO poor", name)
	sound, err := driverAs(t, n, "poor", Options{Table: name})
	if err != nil {
		t.Fatal(err)
	}
	if f := finding(t, sound, "rights"); f.Level != driver.LevelOK {
		t.Errorf("with all rights the doctor says %+v", f)
	}
	ops.query("REVOKE SELECT, DELETE ON %s_breaks FROM poor", name)
	want := "SELECT, DELETE in public." + name + "_breaks"
	if f := finding(t, sound, "rights"); f.Level != driver.LevelFail || !strings.Contains(f.Detail, want) ||
		!strings.Contains(f.Advice, "GRANT") {
		t.Errorf("without rights the doctor says %+v", f)
	}
	var log strings.Builder
	if _, err := driverAs(t, n, "poor", Options{
		Table:  name,
		Logger: slog.New(slog.NewTextHandler(&log, nil)),
	}); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(log.String(), want) {
		t.Errorf("the log of the start says nothing of it:\n%s", &log)
	}
	_, err = driverAs(t, n, "poor", Options{Table: name, Check: CheckRefuse})
	if !errors.Is(err, enginekit.ErrNotSetUp) || !strings.Contains(err.Error(), want) {
		t.Errorf("who wants to be refused is told %v", err)
	}
}

// Names are those of all versions of the engine wherever these agreed on one.
func TestIdentity_IsTheNameWithoutPublic(t *testing.T) {
	for want, of := range map[string]table{
		"interlock": {schema: "public", name: "interlock"}, "app.interlock": {schema: "app", name: "interlock"},
		"Ann.x": {schema: "Ann", name: "x"},
	} {
		if got := of.identity(); got != want {
			t.Errorf("%+v is known as %q, want %q", of, got, want)
		}
	}
}

// A setting that an older server does not know is left out there, and made on newer ones.
func TestSettings_OfNewerServers_AreLeftOutOnOlderOnes(t *testing.T) {
	ops := newAdmin(t, sharedServer(t))
	found := ops.query("%s", setUpText([]parameter{
		{name: "lock_timeout", value: "1234", since: leastVersion * 10000},
		{name: "no_such_timeout", value: "1", since: 999999},
	}))
	if got := ops.one("SHOW lock_timeout"); len(found) != 1 || got != "1234ms" {
		t.Errorf("%v, and the setting that the server knows is %s", found, got)
	}
}
