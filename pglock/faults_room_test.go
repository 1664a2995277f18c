package pglock

import (
	"context"
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/jackc/pgx/v5/pgconn"
)

// fill takes advisory locks until the server's table of locks has no room for another, and returns how they are given
// back.
func fill(t *testing.T, n *servers.PostgresNode) (empty func()) {
	t.Helper()
	pg, err := pgconn.ConnectConfig(t.Context(), configOf(t, n.Addr()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = pg.Close(background) })
	for i := 0; err == nil; i++ {
		_, err = pg.Exec(background, fmt.Sprintf("SELECT pg_advisory_lock(7, %d)", i)).ReadAll()
	}
	if stateOf(err) != stateOutOfMemory {
		t.Fatal(err)
	}
	return func() {
		if _, err := pg.Exec(background, "SELECT pg_advisory_unlock_all()").ReadAll(); err != nil {
			t.Error(err)
		}
	}
}

// A server whose table of locks is full refuses a new one. It has all room that it needs to keep and to give back those
// that there are.
func TestServer_WithoutRoomForAnotherLock_RefusesThatAlone(t *testing.T) {
	n := servers.PostgresServer(t, &servers.PostgresOptions{Config: map[string]string{
		"max_locks_per_transaction": "10",
		"max_connections":           "20",
	}})
	a := client(t, n.Addr(), "&shared=1", calm)
	x, y := lock(t, a, "x"), lock(t, a, "y")
	empty := fill(t, n)
	for _, ask := range map[string]func(context.Context, string) (*interlock.Lease, error){
		"Lock":    a.Lock,
		"TryLock": a.TryLock,
	} {
		ctx, cancel := context.WithTimeout(t.Context(), patience)
		defer cancel()
		_, err := ask(ctx, "another")
		if !errors.Is(err, interlock.ErrUnavailable) || !strings.Contains(err.Error(), "max_locks_per_transaction") {
			t.Errorf("without room for it a lock says %v", err)
		}
	}
	unlock(t, x)
	if err := y.Err(); err != nil {
		t.Errorf("a hold beside is lost: %v", err)
	}
	for info, err := range a.List(t.Context(), "") {
		if err != nil || info.Name != "y" {
			t.Errorf("listed is %+v, %v, want y", info, err)
		}
	}
	unlock(t, y)
	empty()
	unlock(t, lock(t, a, "another"))
}

// What the server refuses to take back is not lost, and nothing else is.
func TestUnlock_ThatTheServerRefuses_EndsNoOtherHold(t *testing.T) {
	n := sharedServer(t)
	ops := newAdmin(t, n)
	ops.query("CREATE ROLE meek LOGIN")
	ops.query("CREATE DATABASE meek OWNER meek") // rights on functions are those of a database
	config := configOf(t, n.Addr())
	config.Database = "meek"
	pg, err := pgconn.ConnectConfig(t.Context(), config)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = pg.Close(background) }()
	within := &admin{t, pg}
	within.query("GRANT CREATE ON SCHEMA public TO meek")
	c, err := interlock.Open(t.Context(), "postgres://meek@"+n.Addr()+"/meek?sslmode=disable&shared=1",
		&interlock.Options{CloseTimeout: time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	x, y := lock(t, c, "x"), lock(t, c, "y")
	within.query("REVOKE EXECUTE ON FUNCTION pg_advisory_unlock(bigint) FROM PUBLIC")
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if err := x.Unlock(ctx); !errors.Is(err, interlock.ErrUnavailable) {
		t.Errorf("an unlock that the server refuses says %v", err)
	}
	within.query("GRANT EXECUTE ON FUNCTION pg_advisory_unlock(bigint) TO PUBLIC")
	unlock(t, lock(t, c, "x")) // it was given back in the background
	if err := y.Err(); err != nil {
		t.Errorf("the hold beside is lost: %v", err)
	}
	unlock(t, y)
}

// A statement that an operator cancels may have had its effect: then the lock is given back, and the session has not
// lost what it has.
func TestUnlock_ThatIsCancelledAfterItsEffect_IsDone_AndEndsNoOtherHold(t *testing.T) {
	n := sharedServer(t)
	d := open(t.Context(), t, n.Addr(), Options{Table: ownTable(), Shared: 1})
	defer func() { _ = d.Close() }()
	d.texts[stmtUnlock] = "SELECT pg_advisory_unlock($1::bigint) AND pg_cancel_backend(pg_backend_pid()) AND " +
		"pg_sleep(10) IS NOT NULL"
	x, y := request("x", "1"), request("y", "2")
	y.Lost = func(reason driver.LostReason, err error) { t.Errorf("the hold beside is lost: %s, %v", reason, err) }
	acquire(t, d, x)
	acquire(t, d, y)
	release(t, d, x)
	again := request("x", "3")
	acquire(t, d, again)
	release(t, d, again)
	release(t, d, y)
}

// A wait that is given up, or a try that has failed, costs the server the same, however many locks there are.
func TestLeave_DoesNotLookThroughAllLocks(t *testing.T) {
	n := sharedServer(t)
	d := open(t.Context(), t, n.Addr(), Options{Table: ownTable()})
	defer func() { _ = d.Close() }()
	ops := newAdmin(t, n)
	ops.query("SELECT pg_advisory_lock(1000000 + i) FROM generate_series(1, 10) i")
	for st, text := range d.texts {
		if strings.Contains(text, "pg_locks") && statement(st) != stmtLook {
			t.Errorf("%s reads all locks, and is not for people who look", text)
		}
	}
	number := regexp.MustCompile(`\$1`)
	for _, st := range []statement{stmtUnlock, stmtUnlockShared, stmtUnlockAll, stmtElsewhere, stmtElsewhereShared} {
		text := number.ReplaceAllString(d.texts[st], "424242")
		if most := mostRows(t, newAdmin(t, n), text); most > 1 {
			t.Errorf("the server looked at %d locks, want the one that is asked about:\n%s", most, text)
		}
	}
}
