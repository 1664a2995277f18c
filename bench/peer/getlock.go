package peer

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"math/rand/v2"

	_ "github.com/go-sql-driver/mysql" // registers mysql
	"github.com/interlock-go/interlock/bench/engined"
)

// getLock is the floor on MySQL: GET_LOCK and nothing else.
func getLock() Spec {
	return sqlSpec(engined.MySQL, "get-lock", openSQLLocks, doesLock,
		"by hand: GET_LOCK and RELEASE_LOCK through database/sql, on a connection that each goroutine keeps; "+
			"no token, and a connection that dies takes the lock with it unnoticed")
}

// getLockToken is what a careful user writes.
func getLockToken() Spec {
	return sqlSpec(engined.MySQL, "get-lock-token", openSQLLocks, doesLock|doesMint,
		"the same, and after GET_LOCK one INSERT ... ON DUPLICATE KEY UPDATE, committed by itself, that writes "+
			"greatest(previous + 1, the server's clock in µs) into a row and returns it as LAST_INSERT_ID")
}

// mysqlTurns is the floor of very many sessions.
func mysqlTurns() Spec {
	return sqlSpec(engined.MySQL, "tokens-in-turn-my", openSQLLocks, doesMint,
		"no lock in MariaDB: that INSERT alone, on a connection that each goroutine keeps, whose turn comes by "+
			"a file and a pipe, first come, first served, and which has written once before it waits: what the "+
			"sessions cost the server whoever orders them")
}

// sqlSpec is a lock by hand in a database, with the parts given. Without a lock there workers wait elsewhere.
func sqlSpec(
	engine, name string, open func(context.Context, Place, parts) (Peer, error), does parts, explains string,
) Spec {
	return Spec{
		Name: name, Does: explains, Engine: engine, Outside: does&doesLock == 0,
		Open: func(ctx context.Context, at Place) (Peer, error) { return open(ctx, at, does) },
	}
}

// parts are what is done for one acquisition. Without locks the turns decide.
type parts int

const (
	doesLock parts = 1 << iota
	doesMint
)

const (
	mysqlTable = "CREATE TABLE IF NOT EXISTS bench_tokens " +
		"(name VARBINARY(200) PRIMARY KEY, token BIGINT UNSIGNED NOT NULL) ENGINE=InnoDB"

	mysqlMint = "INSERT INTO bench_tokens (name, token) VALUES (?, LAST_INSERT_ID(" + mysqlClock + ")) " +
		"ON DUPLICATE KEY UPDATE token = LAST_INSERT_ID(GREATEST(token + 1, VALUES(token)))"
	mysqlClock = "CAST(UNIX_TIMESTAMP(NOW(6)) * 1000000 AS UNSIGNED)"

	// longWait is in seconds: what is negative for "ever" means other things in MariaDB.
	longWait = 3600
)

// sqlLocks are connections that are pinned.
type sqlLocks struct {
	db    *sql.DB
	at    Place
	does  parts
	conns []*sql.Conn
}

func openSQLLocks(ctx context.Context, at Place, does parts) (Peer, error) {
	db, err := sql.Open("mysql", engined.MySQLDSN(at.Server))
	if err != nil {
		return nil, err
	}
	if does&doesMint != 0 {
		if _, err := db.ExecContext(ctx, mysqlTable); err != nil {
			return nil, errors.Join(err, db.Close())
		}
	}
	return &sqlLocks{db: db, at: at, does: does}, nil
}

// Worker returns a worker with a connection of its own.
func (s *sqlLocks) Worker(name string) (Worker, error) {
	c, err := s.db.Conn(context.Background())
	if err != nil {
		return nil, err
	}
	s.conns = append(s.conns, c)
	return &sqlWorker{conn: c, name: s.at.run() + name, does: s.does, turn: turnsOf(s.at, name)}, nil
}

// Close closes the connections.
func (s *sqlLocks) Close() error {
	var errs []error
	for _, c := range s.conns {
		errs = append(errs, c.Close())
	}
	return errors.Join(append(errs, s.db.Close())...)
}

type sqlWorker struct {
	conn  *sql.Conn
	name  string
	does  parts
	turn  turns // if it does not lock
	token int64
}

// Lock waits in the server, and mints. The end of ctx breaks the connection.
func (w *sqlWorker) Lock(ctx context.Context) error {
	if err := w.wait(ctx); err != nil || w.does&doesMint == 0 {
		return err
	}
	result, err := w.conn.ExecContext(ctx, mysqlMint, w.name)
	if err != nil {
		return err
	}
	w.token, err = result.LastInsertId()
	return err
}

func (w *sqlWorker) wait(ctx context.Context) error {
	if w.does&doesLock == 0 {
		if _, err := w.conn.ExecContext(ctx, mysqlMint, fmt.Sprint(rand.Uint64())); err != nil { // as on PostgreSQL
			return err
		}
		return w.turn.lock(ctx)
	}
	return w.one(ctx, "SELECT GET_LOCK(?, ?)", w.name, longWait)
}

// Unlock releases.
func (w *sqlWorker) Unlock(ctx context.Context) error {
	if w.does&doesLock == 0 {
		return w.turn.unlock()
	}
	return w.one(ctx, "SELECT RELEASE_LOCK(?)", w.name)
}

// one asks for what is 1 if all is well.
func (w *sqlWorker) one(ctx context.Context, query string, args ...any) error {
	var n sql.NullInt64
	if err := w.conn.QueryRowContext(ctx, query, args...).Scan(&n); err != nil {
		return err
	}
	if n.Int64 != 1 {
		return fmt.Errorf("%s: %v, not 1", query, n)
	}
	return nil
}
