package target

import (
	"context"
	"database/sql"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/drivertest/servers"
)

// A server of several processes, or of several users, sees the clock as well; and who waits by it waits for as long as was said.
func TestClock_IsWhatDatabasesSee(t *testing.T) {
	for _, c := range []struct {
		name, driver, now, sleep string
		start                    func(clock *servers.Clock) (address string)
	}{
		{"PostgreSQL", "pgx", "SELECT extract(epoch FROM clock_timestamp())::bigint", "SELECT pg_sleep(0.01)", func(clock *servers.Clock) string {
			return servers.PostgresServer(t, &servers.PostgresOptions{Clock: clock}).URL(nil) + "?sslmode=disable"
		}},
		{"MariaDB", "mysql", "SELECT unix_timestamp(sysdate())", "SELECT sleep(0.01)", func(clock *servers.Clock) string {
			return "root@tcp(" + servers.MariaDBServer(t, &servers.MariaDBOptions{Clock: clock}).Addr() + ")/"
		}},
	} {
		clock := servers.NewClock(t)
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
		err := onDatabase(c.driver, c.start(clock), func(db *sql.DB) error {
			for _, want := range []time.Duration{0, time.Hour, -time.Hour, 0} {
				clock.Set(want)
				var seconds int64
				if err := db.QueryRowContext(ctx, c.now).Scan(&seconds); err != nil {
					return err
				}
				if got := time.Until(time.Unix(seconds, 0)).Round(10 * time.Second); got != want {
					t.Errorf("%s is %v ahead, want %v", c.name, got, want)
				}
				if _, err := db.ExecContext(ctx, c.sleep); err != nil {
					return fmt.Errorf("to wait for 10 ms, %v ahead: %w", want, err)
				}
			}
			return nil
		})
		if cancel(); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// A PostgreSQL asks its wall clock whether an idle session's time is over, when the timer says so, and else waits for the rest. The second
// session, which was opened later and has more time, ends in order; so the timer of the first has run by then.
func TestAVanishedClient_OfAServerWhoseClockWasSetBack_KeepsItsLocks(t *testing.T) {
	clock := servers.NewClock(t)
	url := servers.PostgresServer(t, &servers.PostgresOptions{Clock: clock}).URL(nil) + "?sslmode=disable"
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	idleFor := func(millis string) (pid int) {
		db, err := sql.Open("pgx", url+"&idle_session_timeout="+millis)
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
	for by, want := range map[time.Duration]int{0: 0, -time.Hour: 1} {
		clock.Set(0)
		first := idleFor("300")
		clock.Set(by)
		for second := idleFor("600"); lives(second) > 0; wait(ctx, 10*time.Millisecond) {
		}
		if n := lives(first); n != want {
			t.Errorf("with a clock that was set by %v, %d sessions of the vanished client live, want %d", by, n, want)
		}
	}
}
