package peer

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"math/rand/v2"
	"sync"

	"github.com/interlock-go/interlock/bench/engined"
	"github.com/jackc/pgx/v5"
)

// advisory is the floor on PostgreSQL: pg_advisory_lock and nothing else.
func advisory() Spec {
	return sqlSpec(engined.Postgres, "advisory", openAdvisory, doesLock,
		"by hand: pg_advisory_lock and pg_advisory_unlock through pgx, prepared, on a connection that each "+
			"goroutine keeps; no token, and a connection that dies takes the lock with it unnoticed")
}

// advisoryToken is what a careful user writes.
func advisoryToken() Spec {
	return sqlSpec(engined.Postgres, "advisory-token", openAdvisory, doesLock|doesMint,
		"the same, and after pg_advisory_lock one INSERT ... ON CONFLICT DO UPDATE ... RETURNING, committed by "+
			"itself, that writes greatest(previous + 1, the server's clock in µs) into a row")
}

// pgTurns is the floor of very many sessions.
func pgTurns() Spec {
	return sqlSpec(engined.Postgres, "tokens-in-turn-pg", openAdvisory, doesMint,
		"no lock in PostgreSQL: that INSERT alone, on a connection that each goroutine keeps, whose turn comes "+
			"by a file and a pipe, first come, first served, and which has written once before it waits: what the "+
			"sessions cost the server whoever orders them")
}

const (
	pgTable = "CREATE TABLE IF NOT EXISTS bench_tokens (key bigint PRIMARY KEY, token bigint NOT NULL) WITH " +
		"(fillfactor = 50)"

	pgMint = "INSERT INTO bench_tokens AS t (key, token) " +
		"VALUES ($1, (extract(epoch FROM clock_timestamp()) * 1000000)::bigint) " +
		"ON CONFLICT (key) DO UPDATE SET token = greatest(t.token + 1, excluded.token) RETURNING token"

	// pgTableLock is held while the table is made: two who do so at once are told of each other by an error.
	pgTableLock = 1
)

// advisories are connections that are pinned.
type advisories struct {
	at   Place
	does parts

	mu    sync.Mutex // guards conns
	conns []*pgx.Conn
}

func openAdvisory(ctx context.Context, at Place, does parts) (Peer, error) {
	a := &advisories{at: at, does: does}
	if does&doesMint == 0 {
		return a, nil
	}
	c, err := pgx.Connect(ctx, engined.PostgresURL(at.Server))
	if err != nil {
		return nil, err
	}
	_, err = c.Exec(ctx, "SELECT pg_advisory_lock($1)", pgTableLock)
	if err == nil {
		_, err = c.Exec(ctx, pgTable)
	}
	return a, errors.Join(err, c.Close(ctx))
}

// Worker returns a worker with a connection of its own.
func (a *advisories) Worker(name string) (Worker, error) {
	c, err := pgx.Connect(context.Background(), engined.PostgresURL(a.at.Server))
	if err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.conns = append(a.conns, c)
	h := fnv.New64a()
	_, _ = h.Write([]byte(a.at.run() + name)) // it cannot fail
	return &advisoryWorker{conn: c, key: int64(h.Sum64()), does: a.does, turn: turnsOf(a.at, name)}, nil
}

// Close closes the connections.
func (a *advisories) Close() error {
	var errs []error
	for _, c := range a.conns {
		errs = append(errs, c.Close(context.Background()))
	}
	return errors.Join(errs...)
}

type advisoryWorker struct {
	conn  *pgx.Conn
	key   int64
	does  parts
	turn  turns // if it does not lock
	token int64
}

// Lock waits in the server, and mints. The end of ctx breaks the connection.
func (w *advisoryWorker) Lock(ctx context.Context) error {
	if err := w.wait(ctx); err != nil || w.does&doesMint == 0 {
		return err
	}
	return w.conn.QueryRow(ctx, pgMint, w.key).Scan(&w.token)
}

func (w *advisoryWorker) wait(ctx context.Context) error {
	if w.does&doesLock == 0 {
		// A session's first write makes the server read what it knows of the table. What locks may have done that
		// before its turn, so the floor has.
		if err := w.conn.QueryRow(ctx, pgMint, rand.Int64()).Scan(&w.token); err != nil {
			return err
		}
		return w.turn.lock(ctx)
	}
	_, err := w.conn.Exec(ctx, "SELECT pg_advisory_lock($1)", w.key)
	return err
}

// Unlock releases.
func (w *advisoryWorker) Unlock(ctx context.Context) error {
	if w.does&doesLock == 0 {
		return w.turn.unlock()
	}
	var released bool
	if err := w.conn.QueryRow(ctx, "SELECT pg_advisory_unlock($1)", w.key).Scan(&released); err != nil {
		return err
	}
	if !released {
		return fmt.Errorf("pg_advisory_unlock: %w", ErrLost)
	}
	return nil
}
