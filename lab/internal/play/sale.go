package play

import (
	"context"
	"database/sql"

	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/lab/exhibit"
)

// Sale opens a sale of n pieces, with empty books. With keys the books refuse an order that is there already.
func (m *MariaDB) Sale(n int, keys bool) {
	m.p.Helper()
	key := ""
	if keys {
		key = " PRIMARY KEY"
	}
	m.Exec("DROP TABLE IF EXISTS orders")
	m.Exec("CREATE TABLE orders (request VARCHAR(20) NOT NULL" + key + ")")
	m.Exec("UPDATE goods SET number = ? WHERE id = 1", n)
	if err := saleGuard.CreateTable(m.p.Context(), m.db); err != nil {
		m.p.Fatal(err)
	}
	m.watchStock()
}

// saleGuard keeps a consumer that was overtaken from booking.
var saleGuard = fence.NewSQLGuard(fence.MySQL, "fence")

// Orders returns how many orders are in the books.
func (m *MariaDB) Orders() int {
	m.p.Helper()
	var n int
	if err := m.db.QueryRowContext(m.p.Context(), "SELECT COUNT(*) FROM orders").Scan(&n); err != nil {
		m.p.Fatal(err)
	}
	return n
}

// RowLocks returns how often a transaction has waited for a row since the server began, and for how many milliseconds
// all of them together.
func (m *MariaDB) RowLocks() (waits, ms int) {
	m.p.Helper()
	for name, n := range map[string]*int{"innodb_row_lock_waits": &waits, "innodb_row_lock_time": &ms} {
		row := m.db.QueryRowContext(m.p.Context(), "SHOW GLOBAL STATUS LIKE '"+name+"'")
		if err := row.Scan(&name, n); err != nil {
			m.p.Fatal(err)
		}
	}
	return waits, ms
}

// Quiet returns a connection whose statements the story does not tell: there are too many. Each is one message.
func (m *MariaDB) Quiet() exhibit.SQL {
	m.p.Helper()
	db, err := sql.Open("mysql", m.DSN()+"&interpolateParams=true")
	if err != nil {
		m.p.Fatal(err)
	}
	db.SetMaxOpenConns(1)
	m.p.Cleanup(func() { _ = db.Close() })
	return quiet{db}
}

type quiet struct{ db *sql.DB }

func (q quiet) Number(ctx context.Context, query string, args ...any) (n int64, err error) {
	err = q.db.QueryRowContext(ctx, query, args...).Scan(&n)
	return n, err
}

func (q quiet) Exec(ctx context.Context, query string, args ...any) (int64, error) {
	result, err := q.db.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, err
	}
	return result.RowsAffected()
}
