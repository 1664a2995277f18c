package mysqllock

import (
	"context"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// A server that keeps as many prepared statements as it may, for whomever, refuses to prepare ours. Nothing of us ends
// by that: neither what is held when a session needs its next statement, nor a lock that is asked for, waited for or
// given back.
func TestServer_ThatPreparesNoMoreStatements_KeepsLocks(t *testing.T) {
	n := servers.MariaDBServer(t, nil)
	a := newAdmin(t, n)
	w := locktest.NewNews()
	c := openLocks(t, urlOf(n.Addr())+"?shared=1", &interlock.Options{Observer: w.Observer()})
	x, y := mustLock(t, c, "x"), mustLock(t, c, "y") // the try is prepared, the unlock is not
	a.exec("SET GLOBAL max_prepared_stmt_count = 0")
	mustUnlock(t, x)
	if err := y.Err(); err != nil {
		t.Fatalf("a hold was lost with the first Unlock beside it: %v", err)
	}

	fresh := openLocks(t, urlOf(n.Addr()), &interlock.Options{Observer: w.Observer()})
	got := make(chan error, 1)
	go func() { // ends when y is given back
		l, err := fresh.Lock(context.Background(), "y")
		if err == nil && l.Token() <= y.Token() {
			err = fmt.Errorf("token %d after %d", l.Token(), y.Token())
		}
		if err == nil {
			err = l.Unlock(context.Background())
		}
		got <- err
	}()
	soon(t, "the wait", func() bool { return a.waiting() == 1 })
	mustUnlock(t, y)
	if err := receive(t, "the waiter to get in", got); err != nil {
		t.Errorf("a wait on a session that could prepare nothing: %v", err)
	}
	mustUnlock(t, mustLock(t, fresh, "z"))
	select {
	case lost := <-w.Lost:
		t.Errorf("a hold was lost: %v", lost)
	default:
	}
}

// What is sent as a text says the same, whatever is in it.
func TestToken_OfAStatementThatIsSentAsAText_IsAsEver(t *testing.T) {
	n := servers.MariaDBServer(t, nil)
	a := newAdmin(t, n)
	d := open(context.Background(), t, n.Addr(), Options{})
	defer d.Close()
	a.exec("SET GLOBAL max_prepared_stmt_count = 0")
	const odd = "it's ? \\ \x00\xff"
	for what, grant := range map[string]func() uint64{
		"tried":  func() uint64 { return grantOf(t, d, odd, 16).Token },
		"waited": func() uint64 { return waitedGrantOf(t, d, odd, 16).Token },
	} {
		begin := a.number("SELECT CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS SIGNED)")
		if first, second := grant(), grant(); first < uint64(begin) || second <= first {
			t.Errorf("%s: tokens %d and %d, with the server's clock at %d before", what, first, second, begin)
		}
	}
	if rows := a.number(fmt.Sprintf("SELECT COUNT(*) FROM %s WHERE name = x'%x'", tokenTable, odd)); rows != 1 {
		t.Errorf("%d rows have the name that was asked for, want one", rows)
	}
}

// A statement that is interrupted may have had its effect: then the lock is given back, and the session has not lost
// what it has.
func TestUnlock_ThatIsInterruptedAfterItsEffect_IsDone_AndEndsNoOtherHold(t *testing.T) {
	n := servers.MariaDBServer(t, nil)
	a := newAdmin(t, n)
	d := open(context.Background(), t, n.Addr(), Options{Shared: 1})
	defer d.Close()
	d.texts[stmtUnlock] = "SELECT MIN(a.r) FROM (SELECT RELEASE_LOCK(?) AS r LIMIT 1) a STRAIGHT_JOIN " +
		"seq_1_to_1000000000 s " +
		"ON a.r = 1 AND MD5(s.seq) <> ''"
	take(t, d, "x", "x 1")
	key := mutex("y")
	if _, err := d.Acquire(patient(t), &driver.Request{
		Key: key, ID: "y 1", Tokens: 1, Lost: func(reason driver.LostReason, err error) {
			t.Errorf("the hold beside is lost: %s, %v", reason, err)
		},
	}); err != nil {
		t.Fatal(err)
	}
	done := make(chan error, 1)
	go func() { // ends with the interruption
		done <- d.Release(patient(t), &driver.Release{Key: mutex("x"), ID: "x 1"})
	}()
	const busy = "SELECT ID FROM information_schema.PROCESSLIST WHERE INFO LIKE '%STRAIGHT_JOIN%' AND ID <> " +
		"CONNECTION_ID()"
	soon(t, "the statement to have given the lock back", func() bool {
		return a.number(busy) != 0 && a.holder("x") == 0
	})
	a.exec(fmt.Sprint("KILL QUERY ", a.number(busy)))
	if err := receive(t, "the release", done); err != nil {
		t.Error(err)
	}
	if a.holder("y") == 0 {
		t.Error("the server has no holder of the other lock")
	}
}
