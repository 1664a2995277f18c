package play

import (
	"context"
	"database/sql"
	"fmt"
	"slices"
	"strings"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/lab/exhibit"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// toDatabase is a statement and its answer, in the picture.
var toDatabase = &story.Message{To: "MariaDB", Way: story.Both}

// MariaDB is a server of a play, with a table of goods.
type MariaDB struct {
	p    *Play
	addr string
	db   *sql.DB
}

// MariaDB starts a server, and makes the table.
func (p *Play) MariaDB() *MariaDB {
	p.Helper()
	m := &MariaDB{p: p, addr: servers.MariaDB(p)}
	db, err := sql.Open("mysql", m.DSN())
	if err != nil {
		p.Fatal(err)
	}
	m.db = db
	p.Cleanup(func() { _ = db.Close() })
	m.Exec(Goods)
	m.Exec("INSERT INTO goods VALUES (1, 0)")
	return m
}

// DSN returns the server as database/sql opens it. Statements count the rows that they find, as the Java driver of the
// articles does; Go's would count only those that it changes, and 0 instead of 0 is no change.
func (m *MariaDB) DSN() string {
	return "root@tcp(" + m.addr + ")/" + servers.MariaDBDatabase + "?clientFoundRows=true"
}

// URL returns the server as interlock opens it.
func (m *MariaDB) URL() string { return "mysql://root@" + m.addr + "/" + servers.MariaDBDatabase }

// Exec runs a statement of the lab's own.
func (m *MariaDB) Exec(query string, args ...any) {
	m.p.Helper()
	if _, err := m.db.ExecContext(m.p.Context(), query, args...); err != nil {
		m.p.Fatalf("%s: %v", query, err)
	}
}

// Stock sets the stock at the beginning of an act, and has the picture show it.
func (m *MariaDB) Stock(n int) {
	m.p.Helper()
	m.Exec("UPDATE goods SET number = ? WHERE id = 1", n)
	m.watchStock()
	m.p.Say("In stock: %d.", "库存：%d。", n)
}

// watchStock has the picture show the stock.
func (m *MariaDB) watchStock() {
	m.p.Watch("MariaDB: stock", func() string { return fmt.Sprint(m.Number()) })
}

// Number returns the stock.
func (m *MariaDB) Number() int {
	m.p.Helper()
	var n int
	if err := m.db.QueryRowContext(m.p.Context(), "SELECT number FROM goods WHERE id = 1").Scan(&n); err != nil {
		m.p.Fatal(err)
	}
	return n
}

// Client returns the database as an actor uses it.
func (m *MariaDB) Client(a *Actor) exhibit.SQL { return &statements{a, m.db} }

// statements is an actor's connection to a database. It stands still and dies like a [Link].
type statements struct {
	a  *Actor
	db querier
}

func (s *statements) Number(ctx context.Context, query string, args ...any) (int64, error) {
	if err := s.a.gate(strings.Fields(query)); err != nil {
		return 0, err
	}
	var n int64
	err := s.db.QueryRowContext(ctx, query, args...).Scan(&n)
	s.tell(query, args, story.Same(fmt.Sprint(n)), err)
	return n, err
}

func (s *statements) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	if err := s.a.gate(strings.Fields(query)); err != nil {
		return 0, err
	}
	result, err := s.db.ExecContext(ctx, query, args...)
	var rows int64
	if err == nil {
		rows, err = result.RowsAffected()
	}
	answer := story.T("rows: %d", "%d 行", rows)
	if slices.Contains([]string{"START", "COMMIT", "ROLLBACK"}, strings.Fields(query)[0]) {
		answer = story.Same("OK") // they are not about rows
	}
	s.tell(query, args, answer, err)
	return rows, err
}

func (s *statements) tell(query string, args []any, answer story.Text, err error) {
	for _, arg := range args {
		word := fmt.Sprint(arg)
		if text, is := arg.(string); is {
			word = "'" + text + "'"
		}
		query = strings.Replace(query, "?", word, 1)
	}
	if err != nil {
		answer = story.Same(err.Error())
	}
	s.a.p.said(s.a.name, story.Join(story.Same(query+"  →  "), answer), toDatabase)
}

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
