package itest

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/go-sql-driver/mysql"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/stdlib"
	_ "modernc.org/sqlite" // the database/sql driver "sqlite"
)

// patience bounds everything that must happen at some time.
const patience = 20 * time.Second

// database is one kind of SQL database and how tests look into it.
type database struct {
	name    string
	dialect fence.Dialect
	levels  []sql.IsolationLevel // that make sense
	addr    func(t testing.TB) string
	open    func(t testing.TB, addr string) *sql.DB
	waits   string // a number above 0 while the session with the given number waits for a row
	session string // the number of the session that asks
}

var (
	mariaDB = &database{
		name: "MariaDB", dialect: fence.MySQL,
		levels: []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
		addr:   servers.Share(&lasting, servers.MariaDB),
		open:   openMariaDB,
		// INNODB_TRX would tell sessions apart, but shows what it was when nobody had asked for a tenth of a second.
		waits: `SELECT CAST(VARIABLE_VALUE AS INT) FROM information_schema.GLOBAL_STATUS
			WHERE VARIABLE_NAME = 'INNODB_ROW_LOCK_CURRENT_WAITS' AND ? > 0`,
		session: `SELECT CONNECTION_ID()`,
	}
	postgreSQL = &database{
		name: "PostgreSQL", dialect: fence.PostgreSQL,
		levels: []sql.IsolationLevel{sql.LevelReadCommitted, sql.LevelRepeatableRead, sql.LevelSerializable},
		addr:   servers.Share(&lasting, servers.Postgres),
		open:   openPostgreSQL,
		waits: `SELECT COUNT(*) FROM pg_stat_activity
			WHERE wait_event_type = 'Lock' AND pid = $1`,
		session: `SELECT pg_backend_pid()`,
	}
	sqLite = &database{
		name: "SQLite", dialect: fence.SQLite, levels: []sql.IsolationLevel{sql.LevelSerializable},
		addr: func(t testing.TB) string { return filepath.Join(t.TempDir(), "test.db") },
		open: openSQLite,
	}
	everywhere = []*database{mariaDB, postgreSQL, sqLite}
	onServers  = []*database{mariaDB, postgreSQL}
)

func openMariaDB(t testing.TB, addr string) *sql.DB {
	t.Helper()
	config := mysql.NewConfig()
	config.User, config.Net, config.Addr, config.DBName = "root", "tcp", addr, servers.MariaDBDatabase
	config.Logger = &mysql.NopLogger{} // connections are broken on purpose
	connector, err := mysql.NewConnector(config)
	if err != nil {
		t.Fatal(err)
	}
	return closed(t, sql.OpenDB(connector))
}

func openPostgreSQL(t testing.TB, addr string) *sql.DB {
	t.Helper()
	config, err := pgx.ParseConfig("postgres://postgres@" + addr + "/postgres?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	return closed(t, stdlib.OpenDB(*config))
}

func openSQLite(t testing.TB, file string) *sql.DB {
	t.Helper()
	db, err := sql.Open("sqlite",
		"file:"+file+"?_pragma=busy_timeout(20000)&_pragma=journal_mode(WAL)&_txlock=immediate")
	if err != nil {
		t.Fatal(err)
	}
	return closed(t, db)
}

// closed closes db with the test.
func closed(t testing.TB, db *sql.DB) *sql.DB {
	t.Cleanup(func() { _ = db.Close() }) // what it could say is about connections that a test has broken
	return db
}

// connect opens d's shared server.
func (d *database) connect(t testing.TB) *sql.DB {
	t.Helper()
	return d.open(t, d.addr(t))
}

// table returns a name for a table of this test, which is dropped after it. The suffix tells several apart.
func (d *database) table(t testing.TB, db *sql.DB, suffix string) string {
	t.Helper()
	name := "t_" + strings.ToLower(strings.NewReplacer("/", "_", " ", "_", "-", "_").Replace(t.Name()))
	if len(name) > 50 {
		name = name[:20] + name[len(name)-30:]
	}
	name += suffix
	drop := func() { _, _ = db.ExecContext(context.Background(), "DROP TABLE IF EXISTS "+name) } // at worst it stays
	drop()
	t.Cleanup(drop)
	return name
}

// guard returns a fence in a table of its own.
func (d *database) guard(t testing.TB, db *sql.DB) *fence.SQLGuard {
	t.Helper()
	g := fence.NewSQLGuard(d.dialect, d.table(t, db, "_fence"))
	if err := g.CreateTable(t.Context(), db); err != nil {
		t.Fatal(err)
	}
	return g
}

// guardOfNumbers returns a fence, and the table of numbers that it is for.
func (d *database) guardOfNumbers(t testing.TB, db *sql.DB) (g *fence.SQLGuard, table string) {
	t.Helper()
	g, table = d.guard(t, db), d.table(t, db, "")
	d.exec(t, db, "CREATE TABLE "+table+" (n INT NOT NULL)")
	return g, table
}

// params writes d's parameters for question marks.
func (d *database) params(text string) string {
	if d.dialect == fence.MySQL {
		return text
	}
	for n := 1; strings.Contains(text, "?"); n++ {
		text = strings.Replace(text, "?", fmt.Sprintf("$%d", n), 1)
	}
	return text
}

// exec runs statements that must succeed.
func (d *database) exec(t testing.TB, db *sql.DB, text string, args ...any) {
	t.Helper()
	if _, err := db.ExecContext(t.Context(), d.params(text), args...); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
}

// number returns the one number that a query finds.
func (d *database) number(t testing.TB, db *sql.DB, text string, args ...any) int {
	t.Helper()
	var n int
	if err := db.QueryRowContext(t.Context(), d.params(text), args...).Scan(&n); err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return n
}

// each runs a test on several databases.
func each(t *testing.T, on []*database, f func(t *testing.T, d *database)) {
	for _, d := range on {
		t.Run(d.name, func(t *testing.T) { f(t, d) })
	}
}

// again reports whether a transaction is to be repeated: the database has ended it in favour of another.
func again(err error) bool {
	var my *mysql.MySQLError
	if errors.As(err, &my) {
		return my.Number == 1213 || my.Number == 1020
	}
	var pg *pgconn.PgError
	return errors.As(err, &pg) && (pg.Code == "40001" || pg.Code == "40P01")
}

// session is a connection whose transaction can be watched from outside.
type session struct {
	*sql.Conn
	d      *database
	number int64
}

// connection returns a session on db.
func (d *database) connection(t testing.TB, db *sql.DB) *session {
	t.Helper()
	conn, err := db.Conn(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	s := &session{Conn: conn, d: d}
	if d.session != "" {
		if err := conn.QueryRowContext(t.Context(), d.session).Scan(&s.number); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// begin starts a transaction that is rolled back with the test.
func (s *session) begin(t testing.TB, level sql.IsolationLevel) *sql.Tx {
	t.Helper()
	tx, err := s.BeginTx(t.Context(), &sql.TxOptions{Isolation: level})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = tx.Rollback() })
	return tx
}

// awaitLockWait returns when the session waits for a lock, as the server sees it.
func (s *session) awaitLockWait(t testing.TB, db *sql.DB) {
	t.Helper()
	await(t, "the session to wait for a lock", func() bool { return s.d.number(t, db, s.d.waits, s.number) > 0 })
}

// await polls until done, because servers do not tell.
func await(t testing.TB, what string, done func() bool) {
	t.Helper()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(patience); !done(); <-tick.C {
		if time.Now().After(end) {
			t.Fatalf("waited for %s for %v", what, patience)
		}
	}
}
