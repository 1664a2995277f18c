package itest

import (
	"context"
	"database/sql"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/locktx"
	_ "github.com/interlock-go/interlock/memlock" // answers to mem:// URLs
)

// openLocks opens a client of the lock engine of this test; each call is another process to it.
func openLocks(t testing.TB, o *interlock.Observer) *interlock.Client {
	t.Helper()
	c, err := interlock.Open(t.Context(), "mem://"+strings.NewReplacer("/", "_", " ", "_").Replace(t.Name()),
		&interlock.Options{Observer: o})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // what was not confirmed is the test's own business
	return c
}

// users makes a table without a unique index, as in the story of the duplicate insert.
func (d *database) users(t testing.TB, db *sql.DB) string {
	t.Helper()
	table := d.table(t, db, "")
	d.exec(t, db, "CREATE TABLE "+table+" (name VARCHAR(20) NOT NULL)")
	return table
}

var readCommitted = &sql.TxOptions{Isolation: sql.LevelReadCommitted}

// register inserts the user ann unless it is there.
func register(ctx context.Context, tx *sql.Tx, table string) error {
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table+" WHERE name = 'ann'").Scan(&n); err != nil ||
		n > 0 {
		return err
	}
	_, err := tx.ExecContext(ctx, "INSERT INTO "+table+" VALUES ('ann')")
	return err
}

func TestDuplicateInsert_WithReleaseBeforeTheCommit_Happens(t *testing.T) {
	each(t, onServers, func(t *testing.T, d *database) {
		db, locks := d.connect(t), openLocks(t, nil)
		table := d.users(t, db)
		// What a function with a deferred Unlock does whose caller commits.
		locked := func() *sql.Tx {
			tx := d.connection(t, db).begin(t, sql.LevelReadCommitted)
			err := locks.Do(t.Context(), "user:ann", func(ctx context.Context) error {
				return register(ctx, tx, table)
			})
			if err != nil {
				t.Fatal(err)
			}
			return tx
		}
		first := locked()
		second := locked() // gets in, because the first has unlocked, and sees nothing, because it has not committed
		if err := errors.Join(first.Commit(), second.Commit()); err != nil {
			t.Fatal(err)
		}
		if n := d.number(t, db, "SELECT COUNT(*) FROM "+table); n != 2 {
			t.Errorf("%d rows, want the duplicate that this is to show", n)
		}
	})
}

func TestDuplicateInsert_WithReleaseAfterTheCompletion_DoesNotHappen(t *testing.T) {
	each(t, onServers, func(t *testing.T, d *database) {
		for name, rollback := range map[string]bool{"commit": false, "rollback": true} {
			t.Run(name, func(t *testing.T) {
				waiting := make(chan struct{}, 1)
				db, locks := d.connect(t), openLocks(t, nil)
				other := openLocks(t,
					&interlock.Observer{Waiting: func(context.Context, interlock.Event) { waiting <- struct{}{} }})
				table := d.users(t, db)
				opts := &locktx.Options{TxOptions: readCommitted}
				second := make(chan error, 1)
				seen := -1
				first := locktx.Run(t.Context(), db, locks.Mutex("user:ann", nil), opts,
					func(ctx context.Context, tx *sql.Tx) error {
						if err := register(ctx, tx, table); err != nil {
							return err
						}
						go func() { // ends after the first
							second <- locktx.Run(t.Context(), db, other.Mutex("user:ann", nil), opts,
								func(ctx context.Context, tx *sql.Tx) error {
									seen = d.count(ctx, t, tx, table)
									return register(ctx, tx, table)
								})
						}()
						<-waiting // so it gets in at the first moment in which that is possible
						if rollback {
							return errRolledBack
						}
						return nil
					})
				if rollback != errors.Is(first, errRolledBack) || !rollback && first != nil {
					t.Error(first)
				}
				if err := <-second; err != nil {
					t.Error(err)
				}
				if want := map[bool]int{false: 1, true: 0}[rollback]; seen != want {
					t.Errorf("the second saw %d rows, want %d", seen, want)
				}
				if n := d.number(t, db, "SELECT COUNT(*) FROM "+table); n != 1 {
					t.Errorf("%d rows, want one", n)
				}
			})
		}
	})
}

var errRolledBack = errors.New("no")

// count counts the rows of table in tx.
func (d *database) count(ctx context.Context, t testing.TB, tx *sql.Tx, table string) (n int) {
	if err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
		t.Error(err)
	}
	return n
}

// wires are a database behind a network that a test can break.
type wires struct {
	d      *database
	proxy  *servers.Proxy
	db     *sql.DB // through the proxy
	direct *sql.DB
	table  string
	locks  *interlock.Client
	other  *interlock.Client
}

func (d *database) wires(t testing.TB) *wires {
	t.Helper()
	w := &wires{
		d: d, proxy: servers.NewProxy(t, d.addr(t)), direct: d.connect(t), locks: openLocks(t, nil),
		other: openLocks(t, nil),
	}
	w.db = d.open(t, w.proxy.Addr())
	w.table = d.users(t, w.direct)
	t.Cleanup(w.proxy.Reset) // before the table is dropped: a transaction that hangs would be in the way
	return w
}

// run inserts a row under a lock with a lease that is short enough to be waited for, and long enough for a look before
// it ends. before is called when the row has been inserted.
func (w *wires) run(ctx context.Context, before func()) error {
	m := w.locks.Mutex("a", &interlock.LockOptions{Lease: 5 * time.Second})
	return locktx.Run(ctx, w.db, m, nil, func(ctx context.Context, tx *sql.Tx) error {
		_, err := tx.ExecContext(ctx, "INSERT INTO "+w.table+" VALUES ('ann')")
		before()
		return err
	})
}

// rows counts what was committed.
func (w *wires) rows(t testing.TB) int {
	t.Helper()
	return w.d.number(t, w.direct, "SELECT COUNT(*) FROM "+w.table)
}

// wantUnknown fails unless the outcome is unknown and the lock was not released.
func (w *wires) wantUnknown(t testing.TB, err error) {
	t.Helper()
	if locktx.OutcomeOf(err) != locktx.Unknown {
		t.Errorf("got %v, want an unknown outcome", err)
	}
	if _, err := w.other.TryLock(t.Context(), "a"); !errors.Is(err, interlock.ErrHeld) {
		t.Errorf("the lock was released although the outcome is unknown: %v", err)
	}
}

// wantFree fails unless the lock can be had.
func (w *wires) wantFree(t testing.TB) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	if err := w.other.Do(ctx, "a", func(context.Context) error { return nil }); err != nil {
		t.Error(err)
	}
}

func TestRun_WhoseConnectionBreaksAtTheCommit_DoesNotKnow_AndTheLockRunsOut(t *testing.T) {
	each(t, onServers, func(t *testing.T, d *database) {
		t.Run("the COMMIT has arrived", func(t *testing.T) {
			w := d.wires(t)
			inserted, said := make(chan struct{}), make(chan error, 1)
			go func() { // ends with the connection
				said <- w.run(t.Context(), func() { w.proxy.DropReplies(); close(inserted) })
			}()
			<-inserted
			await(t, "the COMMIT to arrive", func() bool { return w.rows(t) == 1 })
			w.proxy.Reset()
			w.wantUnknown(t, <-said)
			w.wantFree(t) // after the lease
		})
		t.Run("the COMMIT has not arrived", func(t *testing.T) {
			w := d.wires(t)
			inserted, said := make(chan struct{}), make(chan error, 1)
			go func() { // ends with the connection
				said <- w.run(t.Context(), func() { w.proxy.BlackHole(servers.ToServer); close(inserted) })
			}()
			<-inserted
			w.proxy.Reset()
			w.wantUnknown(t, <-said)
			if n := w.rows(t); n != 0 {
				t.Errorf("%d rows", n)
			}
		})
		t.Run("nobody answers", func(t *testing.T) {
			w := d.wires(t)
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			inserted, said := make(chan struct{}), make(chan error, 1)
			go func() { // ends with ctx
				said <- w.run(ctx, func() { w.proxy.BlackHole(servers.ToClient); close(inserted) })
			}()
			<-inserted
			await(t, "the COMMIT to arrive", func() bool { return w.rows(t) == 1 }) // so it is under way
			cancel()
			w.wantUnknown(t, <-said)
		})
	})
}

func TestRun_WhoseConnectionBreaksBeforeTheCommit_IsRolledBack_AndUnlocks(t *testing.T) {
	each(t, onServers, func(t *testing.T, d *database) {
		w := d.wires(t)
		err := locktx.Run(t.Context(), w.db, w.locks.Mutex("a", nil), nil, func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO "+w.table+" VALUES ('ann')"); err != nil {
				return err
			}
			w.proxy.Reset()
			_, err := tx.ExecContext(ctx, "INSERT INTO "+w.table+" VALUES ('bob')")
			return err
		})
		if err == nil || locktx.OutcomeOf(err) != locktx.RolledBack {
			t.Errorf("got %v", err)
		}
		if l, err := w.other.TryLock(t.Context(), "a"); err != nil {
			t.Errorf("the lock was not released: %v", err)
		} else {
			_ = l.Unlock(t.Context())
		}
		if n := w.rows(t); n != 0 {
			t.Errorf("%d rows", n)
		}
	})
}

func TestRun_OnADatabaseThatHangs_ReturnsWithItsContext_AndUnlocks(t *testing.T) {
	each(t, onServers, func(t *testing.T, d *database) {
		for name, idle := range map[string]bool{"with an idle connection": true, "with none": false} {
			t.Run(name, func(t *testing.T) {
				w := d.wires(t)
				if idle {
					if err := w.db.PingContext(t.Context()); err != nil {
						t.Fatal(err)
					}
				}
				w.proxy.BlackHole(servers.BothWays)
				ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
				defer cancel()
				err := w.run(ctx, func() {})
				if !errors.Is(err, context.DeadlineExceeded) || locktx.OutcomeOf(err) != locktx.RolledBack {
					t.Errorf("got %v", err)
				}
				w.wantFree(t)
			})
		}
	})
}

func TestRun_WhoseContextEndsDuringAStatement_IsRolledBack_AndUnlocks(t *testing.T) {
	pause := map[*database]string{mariaDB: "SELECT SLEEP(4)", postgreSQL: "SELECT pg_sleep(4)"}
	each(t, onServers, func(t *testing.T, d *database) {
		w := d.wires(t)
		ctx, cancel := context.WithCancel(t.Context())
		err := locktx.Run(ctx, w.db, w.locks.Mutex("a", nil), nil, func(ctx context.Context, tx *sql.Tx) error {
			if _, err := tx.ExecContext(ctx, "INSERT INTO "+w.table+" VALUES ('ann')"); err != nil {
				return err
			}
			time.AfterFunc(50*time.Millisecond, cancel)
			_, err := tx.ExecContext(ctx, pause[d])
			return err
		})
		if !errors.Is(err, context.Canceled) || locktx.OutcomeOf(err) != locktx.RolledBack {
			t.Errorf("got %v", err)
		}
		w.wantFree(t)
		if n := w.rows(t); n != 0 {
			t.Errorf("%d rows", n)
		}
	})
}

// A constraint that is checked by the COMMIT: the database says no, and keeps the connection.
func TestRun_WhoseCommitIsRefused_IsRolledBack_AndUnlocks(t *testing.T) {
	d := postgreSQL
	w := d.wires(t)
	d.exec(t, w.direct, "ALTER TABLE "+w.table+" ADD CONSTRAINT one UNIQUE (name) DEFERRABLE INITIALLY DEFERRED")
	if err := w.run(t.Context(), func() {}); err != nil {
		t.Fatal(err)
	}
	err := w.run(t.Context(), func() {})
	var told *locktx.OutcomeError
	if !errors.As(err, &told) || told.Outcome != locktx.RolledBack || !strings.Contains(err.Error(), "23505") {
		t.Errorf("got %v", err)
	}
	if _, err := w.other.TryLock(t.Context(), "a"); err != nil {
		t.Errorf("the lock was not released: %v", err)
	}
}

// PostgreSQL answers such a COMMIT with a ROLLBACK, which is an answer.
func TestRun_WhoseFunctionIgnoresAFailedStatement_IsRolledBack_AndUnlocks(t *testing.T) {
	w := postgreSQL.wires(t)
	err := locktx.Run(t.Context(), w.db, w.locks.Mutex("a", nil), nil, func(ctx context.Context, tx *sql.Tx) error {
		_, first := tx.ExecContext(ctx, "INSERT INTO "+w.table+" VALUES ('ann')")
		_, second := tx.ExecContext(ctx, "SELECT 1 / 0")
		if second == nil {
			t.Error("the database divides by zero")
		}
		return first
	})
	if err == nil || locktx.OutcomeOf(err) != locktx.RolledBack {
		t.Errorf("got %v", err)
	}
	if _, err := w.other.TryLock(t.Context(), "a"); err != nil {
		t.Errorf("the lock was not released: %v", err)
	}
	if n := w.rows(t); n != 0 {
		t.Errorf("%d rows", n)
	}
}

func TestRun_WithAGuard_IsRefusedOnceANewerHolderWasThere(t *testing.T) {
	each(t, onServers, func(t *testing.T, d *database) {
		w := d.wires(t)
		g := d.guard(t, w.direct)
		opts := &locktx.Options{Guard: g}
		m := w.locks.Mutex("a", nil)
		insert := func(ctx context.Context, tx *sql.Tx) error {
			_, err := tx.ExecContext(ctx, "INSERT INTO "+w.table+" VALUES ('ann')")
			return err
		}
		if err := locktx.Run(t.Context(), w.db, m, opts, insert); err != nil {
			t.Fatal(err)
		}
		touch := func(s fence.Stamp) error {
			tx := d.connection(t, w.direct).begin(t, sql.LevelReadCommitted)
			return errors.Join(g.Check(t.Context(), tx, "a", s), tx.Commit())
		}
		if err := touch(fence.Stamp{Token: 1, Nonce: "older"}); !errors.Is(err, fence.ErrStale) {
			t.Errorf("the guard has not seen the lock's holder: %v", err)
		}
		if err := touch(fence.Stamp{Token: 1<<63 - 1, Nonce: "newer"}); err != nil {
			t.Fatal(err)
		}
		if err := locktx.Run(t.Context(), w.db, m, opts, insert); !errors.Is(err, fence.ErrStale) {
			t.Errorf("got %v", err)
		}
		if err := locktx.Run(t.Context(), w.db, m, &locktx.Options{Guard: g, Resource: "b"}, insert); err != nil {
			t.Error(err)
		}
		if n := w.rows(t); n != 2 {
			t.Errorf("%d rows, want 2", n)
		}
		w.wantFree(t)
	})
}
