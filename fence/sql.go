package fence

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
)

// The fence for SQL: one row for each resource, checked and raised in the transaction that it protects. statements.go
// has the texts, marks.go the rule.

// Dialect is a family of SQL databases.
type Dialect int

// The databases that a SQLGuard knows.
const (
	MySQL      Dialect = iota + 1 // MySQL 5.7 and later, MariaDB 10.2 and later; tables of InnoDB
	PostgreSQL                    // PostgreSQL 9.5 and later
	SQLite                        // SQLite 3.35 and later
)

// String returns the database's name.
func (d Dialect) String() string {
	switch d {
	case MySQL:
		return "MySQL"
	case PostgreSQL:
		return "PostgreSQL"
	case SQLite:
		return "SQLite"
	}
	return fmt.Sprintf("Dialect(%d)", int(d))
}

// SQLGuard is a fence for data in a SQL database. Its marks are rows of a table beside the data, one for each resource,
// and are checked in the transaction that reads or writes the data. It is made by [NewSQLGuard], is safe for concurrent
// use, and keeps nothing itself: all programs that use the same table are one fence.
//
// A row stays for ever, with some hundred bytes. When a resource is gone for good its row can be deleted.
type SQLGuard struct {
	dialect Dialect
	table   string
	text    statements
	err     error // what is wrong with the arguments of NewSQLGuard
}

// NewSQLGuard returns a guard that keeps its marks in the given table, as in "fence" or "shop.fence". That is one or
// two names of letters, digits and underscores. The database takes them exactly as they are written, with upper and
// lower case. It asks no database; a wrong dialect or name is reported by the first call.
func NewSQLGuard(d Dialect, table string) *SQLGuard {
	g := &SQLGuard{dialect: d, table: table}
	quoted, err := quote(d, table)
	if err != nil {
		g.err = fmt.Errorf("fence: %w", err)
		return g
	}
	g.text = statementsFor(d, quoted)
	return g
}

// CreateTable creates the table unless it is there, and checks that it has the right columns. Several programs may do
// it at once. It costs two statements. Where programs may not create tables, [SQLGuard.Schema] returns the statement to
// put among the migrations.
func (g *SQLGuard) CreateTable(ctx context.Context, db *sql.DB) error {
	if err := g.usable(); err != nil {
		return err
	}
	if db == nil {
		return errors.New("fence: CreateTable needs a database, and db is nil")
	}
	_, created := db.ExecContext(ctx, g.text.create)
	rows, err := db.QueryContext(ctx, g.text.probe)
	if err == nil {
		err = errors.Join(rows.Close(), rows.Err())
	}
	switch {
	// Also if creating failed: PostgreSQL reports that to the later of two that do it at once.
	case err == nil:
		return nil
	case created != nil:
		return fmt.Errorf("fence: create table %s: %w", g.table, created)
	default:
		return fmt.Errorf("fence: table %s is not what Schema says: %w", g.table, err)
	}
}

// Schema returns the statement by which CreateTable creates the table, or "" if the arguments of NewSQLGuard were
// wrong.
func (g *SQLGuard) Schema() string { return g.text.create }

// Check lets s touch the resource within tx, or returns a [*StaleError]; then roll tx back. Call it before the
// transaction reads anything of the resource, also if it only reads, and in every transaction.
//
// Check locks the resource's row until tx has ended. So check and effect are one step. A newer holder's Check waits
// until then, and when it goes on, either everything that tx wrote is there or nothing. It follows that transactions on
// one resource run one after the other, those of readers too: keep them short. A mark that was raised counts when tx
// has been committed.
//
// It costs one statement on PostgreSQL and SQLite, and one more if s is refused; on MySQL and MariaDB two.
//
// # Isolation levels
//
// READ COMMITTED is enough. Two things protect the data: the lock on the row, and that every statement after Check sees
// what was committed before Check returned. That also holds
//
//   - at REPEATABLE READ of MySQL and MariaDB if Check is the transaction's first statement that reads. The snapshot is
//     made by the first ordinary SELECT, and Check makes none. After an earlier SELECT, or START TRANSACTION WITH
//     CONSISTENT SNAPSHOT, the data read may be older than the mark. (MariaDB with innodb_snapshot_isolation, the
//     default from 11.6, ends such a transaction with error 1020 instead.)
//   - at SERIALIZABLE of MySQL and MariaDB, where every SELECT locks.
//   - at REPEATABLE READ and SERIALIZABLE of PostgreSQL. They end a transaction whose snapshot is older than the mark
//     with SQLSTATE 40001. Check returns that error, and the whole transaction has to be repeated, as always at these
//     levels.
//   - in SQLite, which has one writer at a time: Check takes the database's write lock, or fails with SQLITE_BUSY as
//     any write does. Set a busy timeout.
//
// At READ UNCOMMITTED nothing can be promised about what is read. Transactions that check several resources should do
// so in one order. Otherwise the database may have to end one of two that wait for each other (a deadlock).
//
// Within a savepoint a check lasts only as long as that is not rolled back; on several primaries at once it does not
// protect. See the package documentation.
//
// An error that is no *StaleError is the database's, wrapped: the outcome is unknown then, and tx should be rolled
// back.
func (g *SQLGuard) Check(ctx context.Context, tx *sql.Tx, resource string, s Stamp) error {
	if err := g.usable(); err != nil {
		return err
	}
	if tx == nil {
		return errors.New("fence: Check needs the transaction that reads or writes the resource, and tx is nil")
	}
	if err := validate(resource, s); err != nil {
		return err
	}
	if g.dialect == MySQL {
		return g.explain(resource, g.raiseAndLook(ctx, tx, resource, s))
	}
	return g.explain(resource, g.touch(ctx, queryRowOf(tx), resource, s))
}

// Row is one row of an answer: *sql.Row and pgx.Row implement it. An answer without a row makes Scan return an error
// that matches sql.ErrNoRows.
type Row interface {
	// Scan copies the columns of the row into dest, as *sql.Row does.
	Scan(dest ...any) error
}

// QueryRow runs a statement within one transaction and returns its first row.
type QueryRow func(ctx context.Context, query string, args ...any) Row

// CheckBy is [SQLGuard.Check] in a transaction of another library than database/sql, such as pgx. Everything that Check
// says holds, and both are one fence. It is for PostgreSQL and SQLite: on MySQL one statement cannot do it. With pgx:
//
//	err := guard.CheckBy(ctx, func(ctx context.Context, query string, args ...any) fence.Row {
//		return tx.QueryRow(ctx, query, args...)
//	}, "stock:42", stamp)
func (g *SQLGuard) CheckBy(ctx context.Context, queryRow QueryRow, resource string, s Stamp) error {
	if err := g.usable(); err != nil {
		return err
	}
	if queryRow == nil {
		return errors.New("fence: CheckBy needs the transaction that reads or writes the resource, and queryRow is nil")
	}
	if g.dialect == MySQL {
		return errors.New("fence: CheckBy cannot check on MySQL; use Check with a transaction of database/sql")
	}
	if err := validate(resource, s); err != nil {
		return err
	}
	return g.explain(resource, g.touch(ctx, queryRow, resource, s))
}

// queryRowOf returns the QueryRow of a transaction of database/sql.
func queryRowOf(tx *sql.Tx) QueryRow {
	return func(ctx context.Context, query string, args ...any) Row {
		return tx.QueryRowContext(ctx, query, args...)
	}
}

// explain adds the resource and the table to an error that is no refusal.
func (g *SQLGuard) explain(resource string, err error) error {
	if err != nil && !errors.Is(err, ErrStale) {
		return fmt.Errorf("fence: check %q in table %s: %w", resource, g.table, err)
	}
	return err
}

// touch raises the mark of s, or returns the refusal, on databases where a statement returns the row that it changed.
func (g *SQLGuard) touch(ctx context.Context, queryRow QueryRow, resource string, s Stamp) error {
	raise := g.text.raiseWriter
	if s.Shared {
		raise = g.text.raiseReader
	}
	var passed int
	err := queryRow(ctx, raise, resource, int64(s.Token), s.Nonce).Scan(&passed)
	if !errors.Is(err, sql.ErrNoRows) {
		return err
	}
	// The row is locked although it was not changed, so what is read now is what refused s.
	k, err := g.look(ctx, queryRow, resource)
	if err != nil {
		return err
	}
	if _, err := k.admit(resource, s); err != nil {
		return err
	}
	return errors.New("the row changed under its lock: is something else writing to the table?")
}

// raiseAndLook is touch for MySQL, where a statement cannot return the row that it changed: afterwards the marks say
// what happened. The judgement is made twice, by the database and by admit, and must come out the same.
func (g *SQLGuard) raiseAndLook(ctx context.Context, tx *sql.Tx, resource string, s Stamp) error {
	token, nonce := int64(s.Token), s.Nonce
	var err error
	if s.Shared {
		_, err = tx.ExecContext(ctx, g.text.raiseReader, resource, token, nonce,
			token, token, nonce, token, nonce, token, token, nonce, token, token)
	} else {
		_, err = tx.ExecContext(ctx, g.text.raiseWriter, resource, token, nonce,
			token, token, nonce, token, token, nonce, nonce, token, token, nonce, token, token, nonce, token)
	}
	if err != nil {
		return err
	}
	k, err := g.look(ctx, queryRowOf(tx), resource)
	if err != nil {
		return err
	}
	_, err = k.admit(resource, s)
	return err
}

// look reads the marks of a resource whose row the transaction has locked.
func (g *SQLGuard) look(ctx context.Context, queryRow QueryRow, resource string) (marks, error) {
	var k marks
	var writer, reader int64
	err := queryRow(ctx, g.text.look, resource).Scan(&writer, &k.writer.nonce, &reader, &k.reader.nonce)
	k.writer.token, k.reader.token = uint64(writer), uint64(reader)
	return k, err
}

// usable returns what was wrong when g was made.
func (g *SQLGuard) usable() error {
	if g.err == nil && g.table == "" {
		return errors.New("fence: an SQLGuard is made by NewSQLGuard")
	}
	return g.err
}
