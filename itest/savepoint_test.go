package itest

import (
	"context"
	"database/sql"
	"errors"
	"testing"

	"github.com/interlock-go/interlock/fence"
)

// exec executes statements in tx, in order.
func exec(t *testing.T, tx *sql.Tx, statements ...string) {
	t.Helper()
	for _, s := range statements {
		if _, err := tx.ExecContext(t.Context(), s); err != nil {
			t.Fatalf("%s: %v", s, err)
		}
	}
}

// What the documentation warns of: a check goes with the savepoint in which it was made.
func TestSQLGuard_CheckedWithinASavepoint_IsForgottenWithIt_AndTheNextCheckKnows(t *testing.T) {
	each(t, onServers, func(t *testing.T, d *database) {
		db := d.connect(t)
		g := d.guard(t, db)
		first := d.connection(t, db).begin(t, sql.LevelReadCommitted)
		exec(t, first, "SAVEPOINT inner_work")
		if err := g.Check(t.Context(), first, "r", stamp(1)); err != nil {
			t.Fatal(err)
		}
		exec(t, first, "ROLLBACK TO SAVEPOINT inner_work")

		ctx, cancel := context.WithTimeout(t.Context(), patience) // it waits for nobody
		defer cancel()
		second := d.connection(t, db).begin(t, sql.LevelReadCommitted)
		if err := g.Check(ctx, second, "r", stamp(2)); err != nil {
			t.Fatalf("the newer holder: %v", err)
		}
		if err := second.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := g.Check(t.Context(), first, "r", stamp(1)); !errors.Is(err, fence.ErrStale) {
			t.Errorf("the check again: %v, want that it is overtaken", err)
		}
	})
}

func TestSQLGuard_CheckedOutsideOfASavepoint_StaysWhenThatIsRolledBack(t *testing.T) {
	each(t, onServers, func(t *testing.T, d *database) {
		db := d.connect(t)
		g := d.guard(t, db)
		one, two := d.connection(t, db), d.connection(t, db)
		first, second := one.begin(t, sql.LevelReadCommitted), two.begin(t, sql.LevelReadCommitted)
		if err := g.Check(t.Context(), first, "r", stamp(1)); err != nil {
			t.Fatal(err)
		}
		exec(t, first, "SAVEPOINT inner_work")
		if err := g.Check(t.Context(), first, "r", stamp(1)); err != nil {
			t.Fatal(err)
		}
		exec(t, first, "ROLLBACK TO SAVEPOINT inner_work")
		said := checkLater(t.Context(), g, second, stamp(2))
		two.awaitLockWait(t, db)
		if err := first.Commit(); err != nil {
			t.Fatal(err)
		}
		if err := <-said; err != nil {
			t.Errorf("the newer holder: %v", err)
		}
	})
}
