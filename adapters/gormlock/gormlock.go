// Package gormlock holds locks for as long as a GORM transaction lasts: they are given back when the database has
// committed or rolled back, and never before. It is package locktx for programs that use GORM.
//
//	err := db.Use(gormlock.New()) // once
//
//	err = db.Transaction(func(tx *gorm.DB) error {
//		if _, err := gormlock.Lock(tx, locks.Mutex("stock:42", nil)); err != nil {
//			return err
//		}
//		... // read, check, write; the lock goes with the transaction
//	})
//
// GORM has no hook after a commit. The plugin puts itself between GORM and its pool of connections instead, so every
// way to begin and end a transaction of GORM is covered: Transaction, also when its function panics, and Begin with
// Commit and Rollback. Nested transactions are savepoints of one transaction, so a lock that is taken in one stays
// until the outermost has ended. Prepared statements (Config.PrepareStmt) work as before.
//
// # What is promised
//
// What package locktx says. A transaction is rolled back instead of committed if its context has ended or one of its
// locks was lost by then, and Commit returns the error; when the outcome of the COMMIT is unknown, the error is a
// *locktx.OutcomeError, and the locks run out with their leases. Take the lock before the transaction reads what the
// lock protects: at REPEATABLE READ the database shows what was there at its first read.
//
// # What it cannot do
//
// Transactions that were begun outside of GORM, or before Use, are unknown to it. The pool must be a *sql.DB: with
// plugins that put pools of their own there, Use fails. At a deadline that only the transaction has
// (Config.DefaultTransactionTimeout) the waiting in Lock ends, and nothing is committed after it; a statement that is
// under way ends with the context of its own.
package gormlock

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/locktx"
	"gorm.io/gorm"
)

// ErrNoTransaction says that a *gorm.DB is not in a transaction that the plugin knows.
var ErrNoTransaction = errors.New("not in a transaction: " +
	"call it in db.Transaction or after db.Begin, on a db with db.Use(gormlock.New())")

// Plugin makes GORM's transactions ones that locks can be bound to. Each *gorm.DB needs one of its own.
type Plugin struct{}

var _ gorm.Plugin = (*Plugin)(nil)

// New returns the plugin, for gorm.DB.Use.
func New() *Plugin { return &Plugin{} }

// Name is what GORM knows the plugin by.
func (*Plugin) Name() string { return "interlock:gormlock" }

// Initialize is called by gorm.DB.Use. It asks no database.
func (*Plugin) Initialize(db *gorm.DB) error {
	if prepared, is := db.ConnPool.(*gorm.PreparedStmtDB); is {
		wrapped, err := wrap(prepared.ConnPool)
		if err != nil {
			return err
		}
		prepared.ConnPool = wrapped
		return nil
	}
	wrapped, err := wrap(db.ConnPool)
	if err != nil {
		return err
	}
	db.ConnPool, db.Statement.ConnPool = wrapped, wrapped
	return nil
}

// wrap returns a pool whose transactions the plugin knows.
func wrap(of gorm.ConnPool) (*pool, error) {
	db, is := of.(*sql.DB)
	if !is {
		return nil, fmt.Errorf("gormlock: the pool of connections is a %T; the plugin needs a *sql.DB", of)
	}
	return &pool{db}, nil
}

// pool is the program's own, but for how transactions begin.
type pool struct{ *sql.DB }

var (
	_ gorm.ConnPoolBeginner = (*pool)(nil)
	_ gorm.GetDBConnector   = (*pool)(nil)
)

// BeginTx is how GORM begins.
func (p *pool) BeginTx(ctx context.Context, opts *sql.TxOptions) (gorm.ConnPool, error) {
	tx, err := locktx.Begin(ctx, p.DB, opts)
	if err != nil {
		return nil, err
	}
	t := &transaction{Tx: tx, db: p.DB}
	t.end, t.ends = ctx.Deadline()
	return t, nil
}

// GetDBConn is what gorm.DB.DB returns.
func (p *pool) GetDBConn() (*sql.DB, error) { return p.DB, nil }

// transaction is what GORM has for a pool while a transaction lasts.
type transaction struct {
	*locktx.Tx
	db *sql.DB

	end  time.Time // the deadline that it was begun with, if it ends so
	ends bool

	// mu guards owner. It is held while a lock is waited for, as the statements of a transaction follow each other.
	mu    sync.Mutex
	owner *interlock.Lease // whose owner is the transaction's; nil before its first lock
}

var (
	_ gorm.Tx             = (*transaction)(nil)
	_ gorm.GetDBConnector = (*transaction)(nil)
)

// GetDBConn is what gorm.DB.DB returns.
func (t *transaction) GetDBConn() (*sql.DB, error) { return t.db, nil }

// of returns the transaction that tx is in.
func of(tx *gorm.DB) (*transaction, error) {
	if tx == nil || tx.Statement == nil {
		return nil, fmt.Errorf("gormlock: %w", ErrNoTransaction)
	}
	in := tx.Statement.ConnPool
	if prepared, is := in.(*gorm.PreparedStmtTX); is {
		in = prepared.Tx
	}
	t, is := in.(*transaction)
	if !is {
		return nil, fmt.Errorf("gormlock: %w", ErrNoTransaction)
	}
	return t, nil
}

// inTime returns ctx with the transaction's deadline, of which a statement's context knows nothing if GORM has set it
// (Config.DefaultTransactionTimeout).
func (t *transaction) inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	if !t.ends {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, t.end)
}

// Lock waits until m is held, and keeps it until the transaction of tx has completed. The waiting ends with the context
// of tx (gorm.DB.WithContext) and at the deadline with which the transaction was begun; the error is then as that of
// Mutex.Lock, and the transaction should be rolled back. If the transaction has completed meanwhile, the lock is
// released and the error matches sql.ErrTxDone. All locks of one transaction have one owner, so one that it holds
// already is held once more at once. Do not unlock the lease yourself.
func Lock(tx *gorm.DB, m *interlock.Mutex) (*interlock.Lease, error) {
	t, err := of(tx)
	switch {
	case err != nil:
		return nil, err
	case m == nil:
		return nil, errors.New("gormlock: the mutex is nil")
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	ctx, cancel := t.inTime(tx.Statement.Context)
	defer cancel()
	if t.owner != nil {
		ctx = t.owner.Context(ctx)
	}
	l, err := m.Lock(ctx)
	if err != nil {
		return nil, err
	}
	t.Hold(l)
	var completed atomic.Bool
	// It is called at once if it has, or else when nobody looks any more.
	t.OnCompletion(func(locktx.Outcome) { completed.Store(true) })
	if completed.Load() {
		return nil, notHeld(l, sql.ErrTxDone)
	}
	if err := l.Err(); err != nil { // the lock is lost already, or the transaction has completed just now
		return nil, notHeld(l, err)
	}
	if t.owner == nil {
		t.owner = l
	}
	return l, nil
}

// notHeld says why a lock that was got is not held any more.
func notHeld(l *interlock.Lease, err error) error {
	if errors.Is(err, interlock.ErrReleased) {
		err = sql.ErrTxDone
	}
	return fmt.Errorf("gormlock: lock %q: %w", l.Name(), err)
}

// Hold binds a lease that was taken before to the transaction of tx, as locktx.Tx.Hold does.
func Hold(tx *gorm.DB, l *interlock.Lease) error {
	t, err := of(tx)
	if err != nil {
		return err
	}
	t.Hold(l)
	return nil
}

// OnCompletion has fn called with the outcome when the transaction of tx is complete, while its locks are still held,
// as locktx.Tx.OnCompletion does. For a savepoint that is rolled back alone it is not called.
func OnCompletion(tx *gorm.DB, fn func(locktx.Outcome)) error {
	t, err := of(tx)
	if err != nil {
		return err
	}
	t.OnCompletion(fn)
	return nil
}

// SQLTx returns the transaction of tx as database/sql has it, for fence.SQLGuard.Check. Do not end it.
func SQLTx(tx *gorm.DB) (*sql.Tx, error) {
	t, err := of(tx)
	if err != nil {
		return nil, err
	}
	return t.Tx.Tx, nil
}
