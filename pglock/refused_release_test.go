package pglock

import (
	"errors"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// A role that may not unlock any more has sessions that give nothing back. They do not keep closed for ever what nobody
// holds: the caller is told why, and after a timeout the sessions end, with what is left on them.
func TestUnlock_ThatTheServerRefusesForGood_FreesTheLockAfterATimeout(t *testing.T) {
	n := sharedServer(t)
	table, ops := ownTable(), newAdmin(t, n)
	ops.query("CREATE ROLE dismissed LOGIN")
	_ = open(t.Context(), t, n.Addr(), Options{Table: table}).Close() // makes the tables
	ops.query("GRANT SELECT, INSERT, UPDATE, DELETE ON %[1]s, %[1]s_waits, %[1]s_breaks, %[1]s_readers TO dismissed",
		table)
	c, err := interlock.Open(t.Context(), "postgres://dismissed@"+n.Addr()+"/postgres?sslmode=disable&shared=1&table="+
		table, &interlock.Options{Lease: timeout})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	kept, given := lock(t, c, "kept"), lock(t, c, "given back")
	ops.query("REVOKE EXECUTE ON FUNCTION pg_advisory_unlock(bigint), pg_advisory_unlock_all() FROM PUBLIC")
	t.Cleanup(func() {
		ops.query("GRANT EXECUTE ON FUNCTION pg_advisory_unlock(bigint), pg_advisory_unlock_all() TO PUBLIC")
	})
	if err := given.Unlock(t.Context()); !errors.Is(err, interlock.ErrRefused) ||
		driver.Refusal(err).Hint == "" {
		t.Errorf("the unlock says %v, want that it is refused, and what to do", err)
	}
	if lost := isLost(t, kept, patience); lost.Reason != interlock.LostSession {
		t.Errorf("the other hold was lost for the reason %q", lost.Reason)
	}
	unlock(t, lock(t, client(t, n.Addr(), "&table="+table, calm), "given back"))
}
