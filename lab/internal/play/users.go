package play

import (
	"context"
	"database/sql"
	"fmt"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/exhibit"
)

// querier runs statements: a pool of connections, or one of them.
type querier interface {
	QueryRowContext(ctx context.Context, query string, args ...any) *sql.Row
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Users empties the table of users, which has no unique index, and has the picture show how many are in it.
func (m *MariaDB) Users() {
	m.p.Helper()
	m.Exec("CREATE TABLE IF NOT EXISTS users (name VARCHAR(20) NOT NULL)")
	m.Exec("DELETE FROM users")
	m.p.Watch("users", func() string { return fmt.Sprint(m.Registered()) })
}

// Registered returns how many rows the table of users has that everybody sees.
func (m *MariaDB) Registered() int {
	m.p.Helper()
	var n int
	if err := m.db.QueryRowContext(m.p.Context(), "SELECT COUNT(*) FROM users").Scan(&n); err != nil {
		m.p.Fatal(err)
	}
	return n
}

// Session returns a connection of an actor's own, for transactions. They see what others have committed.
func (m *MariaDB) Session(a *Actor) exhibit.SQL {
	m.p.Helper()
	conn, err := m.db.Conn(m.p.Context())
	if err != nil {
		m.p.Fatal(err)
	}
	m.p.Cleanup(func() { _ = conn.Close() })
	if _, err := conn.ExecContext(m.p.Context(), "SET SESSION TRANSACTION ISOLATION LEVEL READ COMMITTED"); err != nil {
		m.p.Fatal(err)
	}
	return &statements{a, conn}
}

// Cable returns a cable to the database that can break, and how a process opens the database over it.
func (m *MariaDB) Cable() (cable *servers.Proxy, dsn string) {
	m.p.Helper()
	cable = servers.NewProxy(m.p, m.addr)
	return cable, (&MariaDB{addr: cable.Addr()}).DSN()
}

// AwaitRegistered returns when so many rows are there for everybody to see.
func (m *MariaDB) AwaitRegistered(n int) {
	m.p.Helper()
	if !m.p.until(func() bool { return m.Registered() == n }) {
		m.p.Fatalf("there are %d users, not %d", m.Registered(), n)
	}
}
