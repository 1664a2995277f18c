package pglock

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// listed are the names of the locks that d lists.
func listed(t *testing.T, d *Driver) (names string) {
	t.Helper()
	for info, err := range d.Locks(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		names += info.Name
	}
	return names
}

// A driver that only looks makes no table, and needs no right but to read: without tables there are no locks, and with
// them it shows those of others.
func TestReadOnly_MakesNoTable_AndNeedsTheRightToReadAlone(t *testing.T) {
	n := sharedServer(t)
	ops, name := newAdmin(t, n), ownTable()
	ops.query("CREATE ROLE reader LOGIN")
	looks, err := driverAs(t, n, "reader", Options{Table: name, ReadOnly: true})
	if err != nil {
		t.Fatal(err)
	}
	if got := listed(t, looks); got != "" {
		t.Errorf("lists %q", got)
	}
	key := driver.Key{Kind: driver.KindMutex, Name: "x"}
	if info, err := looks.Look(t.Context(), key); err != nil || len(info.Holders) != 0 {
		t.Errorf("shows %+v, %v", info, err)
	}
	if err := looks.Break(t.Context(), key, 1); !errors.Is(err, driver.ErrNotHeld) {
		t.Errorf("breaks what is not there: %v", err)
	}
	if _, err := looks.Acquire(t.Context(), request("x", "1")); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("takes a lock: %v", err)
	}
	if f := finding(t, looks, "tables"); f.Level != driver.LevelWarn || !strings.Contains(f.Detail, name) {
		t.Errorf("without tables the doctor says %+v", f)
	}
	if made := ops.one("SELECT count(*) FROM pg_class WHERE relname LIKE '%s%%'", name); made != "0" {
		t.Errorf("looking has made %s tables", made)
	}

	locks := open(t.Context(), t, n.Addr(), Options{Table: name})
	acquire(t, locks, request("x", "2"))
	ops.query("GRANT SELECT ON %[1]s, %[1]s_waits, %[1]s_readers TO reader", name)
	if got := listed(t, looks); got != "x" {
		t.Errorf("lists %q, want the lock of another", got)
	}
	if f := finding(t, looks, "rights"); f.Level != driver.LevelOK {
		t.Errorf("with the right to read the doctor says %+v", f)
	}
	var log strings.Builder
	later, err := driverAs(t, n, "reader", Options{
		Table: name, ReadOnly: true, Logger: slog.New(slog.NewTextHandler(&log, nil)),
	})
	if err != nil || strings.Contains(log.String(), "check=rights") {
		t.Fatalf("%v\n%s", err, &log)
	}
	if info, err := later.Look(t.Context(), key); err != nil || len(info.Holders) != 1 {
		t.Errorf("shows %+v, %v", info, err)
	}
	ops.query("REVOKE SELECT ON %s_readers FROM reader", name)
	if f := finding(t, looks, "rights"); f.Level != driver.LevelFail || !strings.Contains(f.Detail, "_readers") {
		t.Errorf("without the right to read the doctor says %+v", f)
	}
}
