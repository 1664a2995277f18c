package locktx_test

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"log"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/locktx"
)

// Check, then insert, so that nobody else does the same in between: the lock is held until the
// COMMIT has been answered.
func ExampleRun() { //nolint:testableexamples // it needs a database
	var db *sql.DB              // sql.Open
	var locks *interlock.Client // interlock.Open
	ctx := context.Background()

	opts := &locktx.Options{Guard: fence.NewSQLGuard(fence.MySQL, "fence")} // created by Guard.CreateTable
	err := locktx.Run(ctx, db, locks.Mutex("user:ann", nil), opts, func(ctx context.Context, tx *sql.Tx) error {
		var there int
		err := tx.QueryRowContext(ctx, "SELECT COUNT(*) FROM users WHERE name = 'ann'").Scan(&there)
		if err != nil || there > 0 {
			return err
		}
		_, err = tx.ExecContext(ctx, "INSERT INTO users (name) VALUES ('ann')")
		return err
	})
	switch {
	case err == nil:
		fmt.Println("ann is there")
	case errors.Is(err, interlock.ErrLost), errors.Is(err, fence.ErrStale):
		fmt.Println("somebody else may have been quicker; nothing was changed, unless", locktx.OutcomeOf(err))
	case locktx.OutcomeOf(err) == locktx.Unknown:
		fmt.Println("look whether ann is there, after the lease:", err)
	default:
		fmt.Println("nothing was changed:", err)
	}
}

// In a transaction that the caller runs, a lease is bound to it wherever it is taken.
func ExampleTx_Hold() { //nolint:testableexamples // it needs a database
	var db *sql.DB              // sql.Open
	var locks *interlock.Client // interlock.Open
	ctx := context.Background()

	tx, err := locktx.Begin(ctx, db, nil)
	if err != nil {
		log.Fatal(err)
	}
	defer tx.Rollback() // does nothing after Commit

	lease, err := locks.Lock(ctx, "stock:42")
	if err != nil {
		log.Fatal(err)
	}
	tx.Hold(lease) // from here on it is not ours to unlock
	tx.OnCompletion(func(o locktx.Outcome) {
		if o == locktx.Committed {
			fmt.Println("invalidate the cache")
		}
	})
	if _, err := tx.ExecContext(lease.Context(ctx), "UPDATE stock SET number = number - 1 WHERE id = 42"); err != nil {
		log.Fatal(err)
	}
	if err := tx.Commit(); err != nil {
		log.Fatal(err)
	}
}
