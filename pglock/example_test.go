package pglock_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"log/slog"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/pglock" // also answers to postgres:// URLs
	"github.com/jackc/pgx/v5/pgconn"
)

// The usual way: the URL says where the database is.
func Example() { //nolint:testableexamples // it needs a server
	ctx := context.Background()
	locks, err := interlock.Open(ctx, "postgres://user:password@localhost:5432/app", nil)
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()

	err = locks.Do(ctx, "stock:42", func(context.Context) error {
		fmt.Println("nobody else is in here, on no machine")
		return nil
	})
	switch {
	case errors.Is(err, interlock.ErrLost):
		fmt.Println("the lock was lost while we worked:", err)
	case err != nil:
		fmt.Println("failed:", err)
	}
}

// With a configuration of pgconn. The engine opens connections of its own with it.
func ExampleNew() { //nolint:testableexamples // it needs a server
	config, err := pgconn.ParseConfig("host=localhost user=app dbname=app sslmode=verify-full")
	if err != nil {
		log.Fatal(err)
	}
	engine, err := pglock.New(context.Background(), config, &pglock.Options{
		Table:   "locking.interlock", // with its schema, so that the search_path of a role does not matter
		Timeout: 15 * time.Second,
		Check:   pglock.CheckRefuse, // a database that is not set up for locks is an error
		Logger:  slog.Default(),
	})
	if err != nil {
		log.Fatal(err)
	}
	defer engine.Close()

	locks, err := interlock.New(engine, &interlock.Options{Lease: 15 * time.Second})
	if err != nil {
		log.Fatal(err)
	}
	defer locks.Close()
}
