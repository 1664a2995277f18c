package engined

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/jackc/pgx/v5"
)

// Queue tells how many sessions of a database wait for a lock of the sort that is measured, as the database itself sees
// it.
type Queue struct {
	count func(ctx context.Context) (int, error)
	close func() error
}

// ErrNoQueue says that nobody can tell how many wait.
var ErrNoQueue = errors.New("the engine does not tell how many wait")

// The waiters in GET_LOCK, and for an advisory lock.
const (
	waitsOfMySQL    = "SELECT COUNT(*) FROM information_schema.PROCESSLIST WHERE STATE = 'User lock'"
	waitsOfPostgres = "SELECT count(*) FROM pg_locks WHERE locktype = 'advisory' AND NOT granted"
)

// OpenQueue connects to the server at addr. The error is ErrNoQueue for engines that are no databases.
func OpenQueue(ctx context.Context, engine, addr string) (*Queue, error) {
	switch engine {
	case MySQL:
		db, err := sql.Open("mysql", MySQLDSN(addr))
		if err != nil {
			return nil, err
		}
		return &Queue{close: db.Close, count: func(ctx context.Context) (n int, err error) {
			return n, db.QueryRowContext(ctx, waitsOfMySQL).Scan(&n)
		}}, nil
	case Postgres:
		c, err := pgx.Connect(ctx, PostgresURL(addr))
		if err != nil {
			return nil, err
		}
		return &Queue{
			close: func() error { return c.Close(context.Background()) },
			count: func(ctx context.Context) (n int, err error) { return n, c.QueryRow(ctx, waitsOfPostgres).Scan(&n) },
		}, nil
	}
	return nil, fmt.Errorf("%s: %w", engine, ErrNoQueue)
}

// Len is how many wait now.
func (q *Queue) Len(ctx context.Context) (int, error) { return q.count(ctx) }

// Close ends the connection.
func (q *Queue) Close() error { return q.close() }
