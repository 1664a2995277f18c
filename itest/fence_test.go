package itest

import (
	"context"
	"database/sql"
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/fence"
)

var seed = flag.Uint64("seed", 0, "replay random choices (the schedule is the machine's)")

// newRand returns a source of random numbers whose seed is in the log.
func newRand(t testing.TB) *rand.Rand {
	t.Helper()
	s := *seed
	if s == 0 {
		s = rand.Uint64()
	}
	t.Logf("seed %d", s)
	return rand.New(rand.NewPCG(s, 0))
}

func stamp(token uint64) fence.Stamp {
	return fence.Stamp{Token: token, Nonce: fmt.Sprintf("n%d", token)}
}

func TestSQLGuard_JudgesAsMemoryGuard(t *testing.T) {
	each(t, everywhere, func(t *testing.T, d *database) {
		db, random := d.connect(t), newRand(t)
		g := d.guard(t, db)
		var model fence.MemoryGuard
		for story := range 30 {
			resource := fmt.Sprintf("r%d", story)
			tx, err := db.BeginTx(t.Context(), nil)
			if err != nil {
				t.Fatal(err)
			}
			var told []string
			for range 8 {
				s := fence.Stamp{
					Token: 1 + random.Uint64N(4), Nonce: string(rune('a' + random.IntN(2))),
					Shared: random.IntN(2) == 0,
				}
				got, want := g.Check(t.Context(), tx, resource, s), model.Check(resource, s)
				told = append(told, fmt.Sprint(s, ": ", got))
				if fmt.Sprint(got) != fmt.Sprint(want) {
					t.Fatalf("want %v of the last of\n%s", want, strings.Join(told, "\n"))
				}
			}
			if err := tx.Commit(); err != nil {
				t.Fatal(err)
			}
		}
	})
}

func TestSQLGuard_KeepsStrangeNamesAndLargeTokensApart(t *testing.T) {
	each(t, everywhere, func(t *testing.T, d *database) {
		db := d.connect(t)
		g := d.guard(t, db)
		tx := d.connection(t, db).begin(t, sql.LevelDefault)
		long := strings.Repeat("ü", 256)
		for _, resource := range []string{"a", "A", "a ", "ä", "a'; --", "%", `\`, long, long[:510] + "u!"} {
			for _, s := range []fence.Stamp{
				{Token: 1, Nonce: "A"}, {Token: 1<<63 - 1, Nonce: strings.Repeat("é ", 85)},
			} {
				if err := g.Check(t.Context(), tx, resource, s); err != nil {
					t.Errorf("%q: %v", resource, err)
				}
			}
			var stale *fence.StaleError
			err := g.Check(t.Context(), tx, resource, fence.Stamp{Token: 1<<63 - 1, Nonce: strings.Repeat("É ", 85)})
			if !errors.As(err, &stale) || stale.Seen.Token != 1<<63-1 {
				t.Errorf("%q: got %v", resource, err)
			}
		}
		if err := g.Check(t.Context(), tx, "nonce", fence.Stamp{Token: 1, Nonce: "A"}); err != nil {
			t.Error(err)
		}
		err := g.Check(t.Context(), tx, "nonce", fence.Stamp{Token: 1, Nonce: "a"})
		if !errors.Is(err, fence.ErrStale) {
			t.Errorf("nonces that differ in case: got %v", err)
		}
	})
}

// levels runs a test at each isolation level of d.
func (d *database) each(t *testing.T, f func(t *testing.T, level sql.IsolationLevel)) {
	for _, level := range d.levels {
		t.Run(level.String(), func(t *testing.T) { f(t, level) })
	}
}

// checkLater checks in a goroutine of its own and returns where the answer will be.
func checkLater(ctx context.Context, g *fence.SQLGuard, tx *sql.Tx, s fence.Stamp) <-chan error {
	said := make(chan error, 1)
	go func() { said <- g.Check(ctx, tx, "r", s) }() // ends when the other transaction does
	return said
}

// A first touch has no row to lock yet.
func TestSQLGuard_TwoFirstTouchesAtOnce_TheSecondWaitsForTheFirst(t *testing.T) {
	each(t, onServers, func(t *testing.T, d *database) {
		d.each(t, func(t *testing.T, level sql.IsolationLevel) {
			for _, commits := range []bool{true, false} {
				for _, s := range []fence.Stamp{stamp(1), stamp(3)} {
					t.Run(fmt.Sprintf("commits %v then %d", commits, s.Token), func(t *testing.T) {
						db := d.connect(t)
						firstTouches(t, d, db, level, commits, s)
					})
				}
			}
		})
	})
}

func firstTouches(t *testing.T, d *database, db *sql.DB, level sql.IsolationLevel, commits bool, s fence.Stamp) {
	g := d.guard(t, db)
	one, two := d.connection(t, db), d.connection(t, db)
	first, second := one.begin(t, level), two.begin(t, level)
	if err := g.Check(t.Context(), first, "r", stamp(2)); err != nil {
		t.Fatal(err)
	}
	said := checkLater(t.Context(), g, second, s)
	two.awaitLockWait(t, db)
	end := first.Rollback
	if commits {
		end = first.Commit
	}
	if err := end(); err != nil {
		t.Fatal(err)
	}
	err := <-said
	if commits && again(err) && level != sql.LevelReadCommitted { // as the documentation says; the next try knows
		if err := second.Rollback(); err != nil {
			t.Fatal(err)
		}
		err = g.Check(t.Context(), two.begin(t, level), "r", s)
	}
	if stale := commits && s.Token < 2; errors.Is(err, fence.ErrStale) != stale || !stale && err != nil {
		t.Errorf("got %v, want it stale: %v", err, stale)
	}
}

func TestSQLGuard_ANewerHolder_WaitsForTheEndOfTheOldersTransaction_AndSeesWhatItLeft(t *testing.T) {
	each(t, onServers, func(t *testing.T, d *database) {
		d.each(t, func(t *testing.T, level sql.IsolationLevel) {
			db := d.connect(t)
			g, table := d.guardOfNumbers(t, db)
			d.exec(t, db, "INSERT INTO "+table+" VALUES (10)")
			one, two := d.connection(t, db), d.connection(t, db)
			first := one.begin(t, level)
			if err := g.Check(t.Context(), first, "r", stamp(1)); err != nil {
				t.Fatal(err)
			}
			second := two.begin(t, level)
			said := checkLater(t.Context(), g, second, stamp(2))
			two.awaitLockWait(t, db)
			if _, err := first.ExecContext(t.Context(), "UPDATE "+table+" SET n = n - 1"); err != nil {
				t.Fatal(err)
			}
			if err := first.Commit(); err != nil {
				t.Fatal(err)
			}
			err := <-said
			if again(err) && level != sql.LevelReadCommitted {
				_ = second.Rollback()
				second = two.begin(t, level)
				err = g.Check(t.Context(), second, "r", stamp(2))
			}
			if err != nil {
				t.Fatal(err)
			}
			var n int
			if err := second.QueryRowContext(t.Context(), "SELECT n FROM "+table).Scan(&n); err != nil || n != 9 {
				t.Errorf("the newer holder reads %d, %v; the older one had written 9", n, err)
			}
			late := one.begin(t, level)
			said = checkLater(t.Context(), g, late, stamp(1)) // waits for the newer one's end in its turn
			one.awaitLockWait(t, db)
			if err := second.Commit(); err != nil {
				t.Fatal(err)
			}
			err = <-said
			if again(err) && level != sql.LevelReadCommitted {
				_ = late.Rollback()
				err = g.Check(t.Context(), one.begin(t, level), "r", stamp(1))
			}
			if !errors.Is(err, fence.ErrStale) {
				t.Errorf("got %v for the older holder's next touch", err)
			}
		})
	})
}

// At REPEATABLE READ a transaction may have a snapshot that is older than the mark.
func TestSQLGuard_AfterAnEarlierRead_StillRefusesWhoWasOvertaken(t *testing.T) {
	each(t, onServers, func(t *testing.T, d *database) {
		d.each(t, func(t *testing.T, level sql.IsolationLevel) {
			db := d.connect(t)
			g, table := d.guardOfNumbers(t, db)
			touch := func(s fence.Stamp) {
				tx := d.connection(t, db).begin(t, level)
				if err := errors.Join(g.Check(t.Context(), tx, "r", s), tx.Commit()); err != nil {
					t.Fatal(err)
				}
			}
			touch(stamp(1))
			old := d.connection(t, db).begin(t, level)
			var n int
			if err := old.QueryRowContext(t.Context(), "SELECT COUNT(*) FROM "+table).Scan(&n); err != nil {
				t.Fatal(err)
			}
			touch(stamp(2))
			err := g.Check(t.Context(), old, "r", stamp(1))
			if !errors.Is(err, fence.ErrStale) && !(again(err) && level != sql.LevelReadCommitted) {
				t.Errorf("got %v", err)
			}
		})
	})
}

// The default from MariaDB 11.6 on.
func TestSQLGuard_OnMariaDBWithSnapshotIsolation_EndsATransactionWhoseSnapshotIsOlder(t *testing.T) {
	d := mariaDB
	db := d.connect(t)
	g, table := d.guard(t, db), d.table(t, db, "")
	d.exec(t, db, "CREATE TABLE "+table+" (n INT NOT NULL) ENGINE=InnoDB")
	touch := func(tx *sql.Tx, s fence.Stamp) error { return g.Check(t.Context(), tx, "r", s) }
	first := d.connection(t, db).begin(t, sql.LevelReadCommitted)
	if err := errors.Join(touch(first, stamp(1)), first.Commit()); err != nil {
		t.Fatal(err)
	}
	s := d.connection(t, db)
	if _, err := s.ExecContext(t.Context(), "SET SESSION innodb_snapshot_isolation=ON"); err != nil {
		if strings.Contains(err.Error(), "Unknown system variable") {
			t.Skip("this MariaDB, or MySQL, does not have it")
		}
		t.Fatal(err)
	}
	tx := s.begin(t, sql.LevelRepeatableRead)
	d.count(t.Context(), t, tx, table)
	second := d.connection(t, db).begin(t, sql.LevelReadCommitted)
	if err := errors.Join(touch(second, stamp(2)), second.Commit()); err != nil {
		t.Fatal(err)
	}
	if err := touch(tx, stamp(3)); !again(err) {
		t.Errorf("got %v", err)
	}
	if err := touch(s.begin(t, sql.LevelRepeatableRead), stamp(3)); err != nil {
		t.Errorf("the next try: %v", err)
	}
}

// Holders that believe to hold the lock, all at once: what passes the fence is never lost.
func TestSQLGuard_ManyHoldersAtOnce_LoseNoUpdate(t *testing.T) {
	each(t, everywhere, func(t *testing.T, d *database) {
		d.each(t, func(t *testing.T, level sql.IsolationLevel) {
			db := d.connect(t)
			g, table := d.guardOfNumbers(t, db)
			d.exec(t, db, "INSERT INTO "+table+" VALUES (0)")
			const holders, updates = 6, 8
			var wg sync.WaitGroup
			var mu sync.Mutex // guards what follows
			accepted, refused := 0, 0
			for i := range holders {
				wg.Go(func() { // ends with its updates
					for range updates {
						err := update(t.Context(), g, db, table, level, stamp(uint64(i+1)))
						mu.Lock()
						switch {
						case err == nil:
							accepted++
						case errors.Is(err, fence.ErrStale):
							refused++
						default:
							t.Errorf("holder %d: %v", i+1, err)
						}
						mu.Unlock()
					}
				})
			}
			wg.Wait()
			if n := d.number(t, db, "SELECT n FROM "+table); n != accepted || accepted < updates {
				t.Errorf("the number is %d after %d updates were accepted and %d refused", n, accepted, refused)
			}
		})
	})
}

// update adds one by reading and writing, and repeats the transaction while the database asks for that.
func update(
	ctx context.Context, g *fence.SQLGuard, db *sql.DB, table string, level sql.IsolationLevel, s fence.Stamp,
) error {
	for {
		err := updateOnce(ctx, g, db, table, level, s)
		if !again(err) {
			return err
		}
	}
}

func updateOnce(
	ctx context.Context, g *fence.SQLGuard, db *sql.DB, table string, level sql.IsolationLevel, s fence.Stamp,
) error {
	tx, err := db.BeginTx(ctx, &sql.TxOptions{Isolation: level})
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // it has ended by then, or the error before says more
	if err := g.Check(ctx, tx, "r", s); err != nil {
		return err
	}
	var n int
	if err := tx.QueryRowContext(ctx, "SELECT n FROM "+table).Scan(&n); err != nil {
		return err
	}
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("UPDATE %s SET n = %d", table, n+1)); err != nil {
		return err
	}
	return tx.Commit()
}

func TestSQLGuard_CreateTable_ByManyAtOnce_AndOnATableOfAnotherShape(t *testing.T) {
	each(t, everywhere, func(t *testing.T, d *database) {
		db := d.connect(t)
		table := d.table(t, db, "")
		g := fence.NewSQLGuard(d.dialect, table)
		var wg sync.WaitGroup
		for range 8 {
			wg.Go(func() {
				if err := g.CreateTable(t.Context(), db); err != nil {
					t.Error(err)
				}
			})
		}
		wg.Wait()
		d.exec(t, db, "DROP TABLE "+table)
		d.exec(t, db, "CREATE TABLE "+table+" (resource INT NOT NULL)")
		if err := g.CreateTable(t.Context(), db); err == nil || !strings.Contains(err.Error(), "Schema") {
			t.Errorf("got %v for a table of another shape", err)
		}
	})
}

func TestSQLGuard_WithoutItsTable_SaysWhichTable(t *testing.T) {
	each(t, everywhere, func(t *testing.T, d *database) {
		db := d.connect(t)
		g := fence.NewSQLGuard(d.dialect, "no_such_table")
		err := g.Check(t.Context(), d.connection(t, db).begin(t, sql.LevelDefault), "r", stamp(1))
		if err == nil || errors.Is(err, fence.ErrStale) ||
			!strings.Contains(err.Error(), `check "r" in table no_such_table`) {
			t.Errorf("got %v", err)
		}
	})
}
