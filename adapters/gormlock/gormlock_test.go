package gormlock

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/locktx"
	_ "github.com/interlock-go/interlock/memlock" // answers to mem:// URLs
	"gorm.io/gorm"
	"gorm.io/gorm/utils/tests"
)

// What needs a database is tested in the module itest.

// ends is a database that can begin and end transactions, and nothing else.
type ends struct{}

func (ends) Connect(context.Context) (driver.Conn, error) { return ends{}, nil }
func (ends) Driver() driver.Driver                        { return nil }
func (ends) Prepare(string) (driver.Stmt, error)          { return nil, errors.New("not in this fake") }
func (ends) Close() error                                 { return nil }
func (ends) Begin() (driver.Tx, error)                    { return ends{}, nil }
func (ends) Commit() error                                { return nil }
func (ends) Rollback() error                              { return nil }

// open opens GORM on a database that can only begin and end transactions, and two clients of one lock engine.
func open(t *testing.T, config *gorm.Config) (db *gorm.DB, locks, other *interlock.Client) {
	t.Helper()
	pool := sql.OpenDB(ends{})
	t.Cleanup(func() { _ = pool.Close() })
	config.ConnPool = pool
	db, err := gorm.Open(tests.DummyDialector{}, config)
	if err != nil {
		t.Fatal(err)
	}
	return db, client(t), client(t)
}

// url is of the lock engine that the clients of one test share.
func url(t *testing.T) string { return "mem://" + strings.ReplaceAll(t.Name(), "/", "_") }

func client(t *testing.T) *interlock.Client {
	t.Helper()
	c, err := interlock.Open(t.Context(), url(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() }) // what was not confirmed is the test's own business
	return c
}

// free reports whether a client could have the lock "a" now.
func free(t *testing.T, c *interlock.Client) bool {
	t.Helper()
	did, err := c.Mutex("a", nil).TryDo(t.Context(), func(context.Context) error { return nil })
	if err != nil {
		t.Error(err)
	}
	return did
}

func TestLock_LastsUntilTheTransactionHasCompleted(t *testing.T) {
	failed := errors.New("no")
	for name, prepared := range map[string]bool{"usual": false, "prepared": true} {
		for want, result := range map[locktx.Outcome]error{locktx.Committed: nil, locktx.RolledBack: failed} {
			t.Run(name+" "+want.String(), func(t *testing.T) {
				db, locks, other := open(t, &gorm.Config{PrepareStmt: prepared})
				if err := db.Use(New()); err != nil {
					t.Fatal(err)
				}
				var told locktx.Outcome
				err := db.Transaction(func(tx *gorm.DB) error {
					lease, err := Lock(tx, locks.Mutex("a", nil))
					if err != nil {
						return err
					}
					again, err := Lock(tx, locks.Mutex("a", nil))
					if err != nil || again.Token() != lease.Token() {
						t.Errorf("the transaction does not re-enter: %v", err)
					}
					_ = OnCompletion(tx, func(o locktx.Outcome) {
						told = o
						if free(t, other) {
							t.Error("the lock is free while the completion is told")
						}
					})
					if free(t, other) {
						t.Error("the lock is free within the transaction")
					}
					return result
				})
				if !errors.Is(err, result) || told != want || !free(t, other) {
					t.Errorf("got %v, told %v, want %v and the lock free", err, told, want)
				}
			})
		}
	}
}

func TestLock_OfATransactionThatPanics_IsReleased(t *testing.T) {
	db, locks, other := open(t, &gorm.Config{})
	if err := db.Use(New()); err != nil {
		t.Fatal(err)
	}
	func() {
		defer func() {
			if r := recover(); r != "mine" {
				t.Errorf("recovered %v", r)
			}
		}()
		_ = db.Transaction(func(tx *gorm.DB) error {
			if _, err := Lock(tx, locks.Mutex("a", nil)); err != nil {
				t.Error(err)
			}
			panic("mine")
		})
	}()
	if !free(t, other) {
		t.Error("the lock is still held")
	}
}

func TestLock_OfATransactionThatEndsMeanwhile_IsReleased_AndSaysSo(t *testing.T) {
	db, locks, other := open(t, &gorm.Config{})
	if err := db.Use(New()); err != nil {
		t.Fatal(err)
	}
	held, err := other.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	tx := db.Begin()
	watched, waits := waiting(t)
	got := make(chan error, 1)
	go func() { // ends when held does
		l, err := Lock(tx, watched.Mutex("a", nil))
		if l != nil {
			t.Errorf("the lease is %v", l.Err())
		}
		got <- err
	}()
	<-waits
	if err := tx.Commit().Error; err != nil {
		t.Fatal(err)
	}
	if err := held.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := <-got; !errors.Is(err, sql.ErrTxDone) {
		t.Errorf("got %v", err)
	}
	if !free(t, locks) {
		t.Error("the lock is still held")
	}
}

// waiting opens one more client, and a channel that is closed when it begins to wait.
func waiting(t *testing.T) (*interlock.Client, <-chan struct{}) {
	t.Helper()
	begun := make(chan struct{})
	opts := &interlock.Options{Observer: &interlock.Observer{
		Waiting: func(context.Context, interlock.Event) { close(begun) },
	}}
	c, err := interlock.Open(t.Context(), url(t), opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c, begun
}

func TestLock_EndsItsWaitAtTheDeadlineOfTheTransaction(t *testing.T) {
	// It counts from the transaction's beginning, and whose time is over before he asks is not told that
	// somebody holds the lock.
	db, locks, other := open(t, &gorm.Config{DefaultTransactionTimeout: 2 * time.Second})
	if err := db.Use(New()); err != nil {
		t.Fatal(err)
	}
	if _, err := other.Lock(t.Context(), "a"); err != nil {
		t.Fatal(err)
	}
	tx := db.Begin()
	_, err := Lock(tx, locks.Mutex("a", nil))
	if !errors.Is(err, context.DeadlineExceeded) || !errors.Is(err, interlock.ErrHeld) {
		t.Errorf("got %v", err)
	}
	if err := tx.Rollback().Error; err != nil {
		t.Error(err)
	}
}

func TestOutsideOfATransaction_EverythingSaysSo(t *testing.T) {
	db, locks, _ := open(t, &gorm.Config{})
	if err := db.Use(New()); err != nil {
		t.Fatal(err)
	}
	_, lock := Lock(db, locks.Mutex("a", nil))
	_, sqlTx := SQLTx(db)
	for what, err := range map[string]error{
		"Lock": lock, "SQLTx": sqlTx, "Hold": Hold(nil, nil), "OnCompletion": OnCompletion(db, func(locktx.Outcome) {}),
	} {
		if !errors.Is(err, ErrNoTransaction) {
			t.Errorf("%s: got %v", what, err)
		}
	}
	err := db.Transaction(func(tx *gorm.DB) error {
		_, err := Lock(tx, nil)
		return err
	})
	if err == nil || !strings.Contains(err.Error(), "mutex") {
		t.Errorf("got %v", err)
	}
}

func TestUse_WithAPoolOfAnotherKind_Fails(t *testing.T) {
	db, _, _ := open(t, &gorm.Config{})
	db.ConnPool = struct{ gorm.ConnPool }{db.ConnPool}
	if err := db.Use(New()); err == nil || !strings.Contains(err.Error(), "*sql.DB") {
		t.Errorf("got %v", err)
	}
	other, _, _ := open(t, &gorm.Config{})
	if err := errors.Join(other.Use(New())); err != nil {
		t.Error(err)
	}
	if err := other.Use(New()); !errors.Is(err, gorm.ErrRegistered) {
		t.Errorf("got %v", err)
	}
	if pool, err := other.DB(); pool == nil || err != nil {
		t.Errorf("the pool is %v, %v", pool, err)
	}
}
