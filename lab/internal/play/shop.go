package play

import (
	"context"
	"database/sql"
	"fmt"

	_ "github.com/go-sql-driver/mysql" // the articles' database
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/lab/exhibit"
	"github.com/interlock-go/interlock/lab/internal/story"
)

// Mutex takes the process's own sync.Mutex, which nobody else in it has.
func (c *Process) Mutex() {
	c.p.Helper()
	c.must(&order{Do: "mutex"})
	c.p.set(c.name, story.Holds)
	c.p.step(c.name, story.Asks, story.T("mutex.Lock  →  got it", "mutex.Lock  →  拿到了"))
}

// TryMutex is another goroutine of the process that tries to take it.
func (c *Process) TryMutex() bool {
	c.p.Helper()
	ok := c.ask(&order{Do: "mutex"}).OK
	c.p.step(c.name, story.Asks,
		story.T("mutex.TryLock by another goroutine  →  %v", "另一个 goroutine 的 mutex.TryLock  →  %v", ok))
	return ok
}

// Unmutex releases it.
func (c *Process) Unmutex() {
	c.p.Helper()
	c.must(&order{Do: "unmutex"})
	c.p.set(c.name, story.Idle)
	c.Says("mutex.Unlock", "mutex.Unlock")
}

// Database opens the database with the table of goods.
func (c *Process) Database(dsn string) {
	c.p.Helper()
	c.must(&order{Do: "database", URL: c.p.tapDSN(c.name, dsn)})
}

// Read returns the stock.
func (c *Process) Read() int {
	c.p.Helper()
	n := int(c.must(&order{Do: "read"}).N)
	c.p.said(c.name, story.Same("SELECT number  →  "+Answer(int64(n), nil)), toDatabase)
	return n
}

// Write sets the stock.
func (c *Process) Write(n int) {
	c.p.Helper()
	c.must(&order{Do: "write", N: n})
	c.p.said(c.name, story.Same("UPDATE goods SET number = "+Answer(int64(n), nil)), toDatabase)
}

// stock is the table of a shop, as a process reads and writes it.
type stock struct{ db *sql.DB }

// Goods is the table that the experiments on stock use, with one article, number 1.
const Goods = "CREATE TABLE goods (id INT PRIMARY KEY, number INT NOT NULL)"

// obey carries out one order on the table: the steps of check-then-write, one at a time.
func (s *stock) obey(ctx context.Context, o *order) *report {
	var err error
	r := &report{OK: true}
	switch o.Do {
	case "database":
		s.db, err = sql.Open("mysql", o.URL)
	case "read":
		err = s.db.QueryRowContext(ctx, "SELECT number FROM goods WHERE id = 1").Scan(&r.N)
	case "write":
		_, err = s.db.ExecContext(ctx, "UPDATE goods SET number = ? WHERE id = 1", o.N)
	default:
		err = fmt.Errorf("unknown order %q", o.Do)
	}
	if err != nil {
		return said(err)
	}
	return r
}

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
