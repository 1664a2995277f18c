package mysqllock

import (
	"errors"
	"log/slog"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// found is what d's Diagnose says about one check.
func found(t *testing.T, d *Driver, check string) (f driver.Finding) {
	t.Helper()
	for _, f := range d.Diagnose(patient(t)) {
		if f.Check == check {
			return f
		}
	}
	t.Errorf("the doctor says nothing about %s", check)
	return f
}

// listed are the names of the locks that d lists.
func listed(t *testing.T, d *Driver) (names string) {
	t.Helper()
	for info, err := range d.Locks(patient(t), "") {
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
	a := newAdmin(t, n)
	a.exec("CREATE USER reader@'%'")
	a.exec("GRANT SELECT ON " + servers.MariaDBDatabase + ".* TO reader@'%'")
	config := configOf(n.Addr())
	config.User = "reader"
	var log strings.Builder
	looker := func() *Driver {
		d, err := New(patient(t), config, &Options{
			Table: "looked_at", ReadOnly: true, Logger: slog.New(slog.NewTextHandler(&log, nil)),
		})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = d.Close() })
		return d
	}
	looks := looker()
	if got := listed(t, looks); got != "" {
		t.Errorf("lists %q", got)
	}
	key := driver.Key{Kind: driver.KindMutex, Name: "x"}
	if info, err := looks.Look(patient(t), key); err != nil || len(info.Holders) != 0 {
		t.Errorf("shows %+v, %v", info, err)
	}
	if err := looks.Break(patient(t), key, 1); !errors.Is(err, driver.ErrNotHeld) {
		t.Errorf("breaks what is not there: %v", err)
	}
	r := &driver.Request{Key: key, ID: "1", Owner: "o"}
	if _, err := looks.Acquire(patient(t), r); !errors.Is(err, driver.ErrUnsupported) {
		t.Errorf("takes a lock: %v", err)
	}
	if f := found(t, looks, "tables"); f.Level != driver.LevelWarn || !strings.Contains(f.Detail, "looked_at") {
		t.Errorf("without tables the doctor says %+v", f)
	}
	made := a.number("SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_NAME LIKE 'looked_at%'")
	if made != 0 {
		t.Errorf("looking has made %d tables", made)
	}

	locks := open(patient(t), t, n.Addr(), Options{Table: "looked_at"})
	if _, err := locks.Acquire(patient(t), r); err != nil {
		t.Fatal(err)
	}
	if got := listed(t, looks); got != "x" {
		t.Errorf("lists %q, want the lock of another", got)
	}
	if f := found(t, looks, "rights"); f.Level != driver.LevelOK {
		t.Errorf("with the right to read the doctor says %+v", f)
	}
	log.Reset()
	if info, err := looker().Look(patient(t), key); err != nil || len(info.Holders) != 1 {
		t.Errorf("shows %+v, %v", info, err)
	}
	if strings.Contains(log.String(), "check=rights") {
		t.Errorf("who only looks is told of rights:\n%s", &log)
	}
}
