package target

import (
	"context"
	"database/sql"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
)

// A server of several processes, or of another user, sees the clock as well; and who waits by it waits
// for as long as was said.
func TestClock_IsWhatDatabasesSee(t *testing.T) {
	for _, c := range []struct {
		name, driver, now, sleep string
		start                    func(t *testing.T, clock *servers.Clock) (address string)
	}{
		{
			"PostgreSQL", "pgx", "SELECT extract(epoch FROM clock_timestamp())::bigint", "SELECT pg_sleep(0.01)",
			startPostgres,
		},
		{
			"MariaDB", "mysql", "SELECT unix_timestamp(sysdate())", "SELECT sleep(0.01)",
			func(t *testing.T, clock *servers.Clock) string {
				return "root@tcp(" + servers.MariaDBServer(t, &servers.MariaDBOptions{Clock: clock}).Addr() + ")/"
			},
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			clock := servers.NewClock(t)
			address := c.start(t, clock)
			ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
			defer cancel()
			err := onDatabase(c.driver, address, func(db *sql.DB) error {
				for _, want := range []time.Duration{0, time.Hour, -time.Hour, 0} {
					clock.Set(want)
					var seconds int64
					if err := db.QueryRowContext(ctx, c.now).Scan(&seconds); err != nil {
						return err
					}
					if got := time.Until(time.Unix(seconds, 0)).Round(10 * time.Second); got != want {
						t.Errorf("it is %v ahead, want %v", got, want)
					}
					begun := time.Now()
					if _, err := db.ExecContext(ctx, c.sleep); err != nil || time.Since(begun) < 10*time.Millisecond {
						t.Errorf("to wait for 10 ms, %v ahead, took %v: %v", want, time.Since(begun), err)
					}
				}
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
}

func startPostgres(t *testing.T, clock *servers.Clock) (url string) {
	t.Helper()
	return servers.PostgresServer(t, &servers.PostgresOptions{Clock: clock}).URL(nil) + "?sslmode=disable"
}

// A PostgreSQL asks its wall clock whether an idle session's time is over, when the timer says so, and else waits for
// the rest. The second session, which was opened later, ends in order; so the timer of the first has run by then.
func TestAVanishedClient_OfAServerWhoseClockWasSetBack_KeepsItsLocks(t *testing.T) {
	clock := servers.NewClock(t)
	url := startPostgres(t, clock)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	idle := func() (pid int) {
		db, err := sql.Open("pgx", url+"&idle_session_timeout=1000")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = db.Close() }) // the server may have closed it
		if err := db.QueryRowContext(ctx, "SELECT pg_backend_pid()").Scan(&pid); err != nil {
			t.Fatal(err)
		}
		return pid
	}
	lives := func(pid int) (n int) {
		err := onDatabase("pgx", url, func(db *sql.DB) error {
			return db.QueryRowContext(ctx, "SELECT count(*) FROM pg_stat_activity WHERE pid = $1", pid).Scan(&n)
		})
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	first := idle()
	for clock.Set(-time.Hour); lives(first) == 0; clock.Set(-time.Hour) { // the machine stood still for a second
		clock.Set(0)
		first = idle()
	}
	for second := idle(); lives(second) > 0; enginekit.Pause(ctx, 10*time.Millisecond) {
	}
	if lives(first) == 0 {
		t.Error("the first session has ended as if the clock had not been set back: say so in docs/limits/postgres.md")
	}
}

// A PostgreSQL wakes a session up that has been idle for ten seconds, to write down what it has counted, and looks at
// its wall clock then, and ends the session if its time is over by that. (So this test lasts for longer.) Who has
// waited for a lock has a session of its own.
func TestAClockThatIsSetAhead_EndsNoSession_ThatIsWokenToWriteDownWhatItCounts(t *testing.T) {
	t.Parallel()
	clock := servers.NewClock(t)
	url := startPostgres(t, clock)
	open := func() *interlock.Client {
		locks, err := interlock.Open(t.Context(), url, nil) // with leases of 30 s
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = locks.Close() }) // its end is the test's
		return locks
	}
	one, other := open(), open()
	before, err := one.Mutex("a", nil).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	go func() {
		for n := 0; n == 0; enginekit.Pause(t.Context(), 10*time.Millisecond) {
			for info := range one.List(t.Context(), "a") {
				n = len(info.Waiters)
			}
		}
		_ = before.Unlock(t.Context()) // or nobody would be granted it
	}()
	lease, err := other.Mutex("a", nil).Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	clock.Set(time.Hour)
	select {
	case <-lease.Lost():
		t.Error(lease.Err())
	case <-time.After(13 * time.Second):
	}
}
