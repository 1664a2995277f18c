package locktx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"sync"
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/internal/quiet"
	"github.com/interlock-go/interlock/memlock"
)

// fake is a database/sql driver whose answers the test decides. It records what it is asked.
type fake struct {
	mu                      sync.Mutex // guards what follows; the functions are called without it
	begin, commit, rollback func() error
	broken                  bool // connections do not answer any more
	asked                   []string
}

func (f *fake) note(what string, by *func() error) error {
	f.mu.Lock()
	f.asked = append(f.asked, what)
	do, broken := *by, f.broken
	f.mu.Unlock()
	if broken {
		return driver.ErrBadConn
	}
	if do == nil {
		return nil
	}
	return do()
}

// count returns how often the database was asked for what.
func (f *fake) count(what string) (n int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, a := range f.asked {
		if a == what {
			n++
		}
	}
	return n
}

// cut breaks all connections.
func (f *fake) cut() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.broken = true
}

func (f *fake) Connect(context.Context) (driver.Conn, error) { return &fakeConn{f}, nil }
func (f *fake) Driver() driver.Driver                        { return nil }

type fakeConn struct{ f *fake }

var (
	_ driver.ConnBeginTx    = (*fakeConn)(nil)
	_ driver.ExecerContext  = (*fakeConn)(nil)
	_ driver.QueryerContext = (*fakeConn)(nil)
)

func (c *fakeConn) Prepare(string) (driver.Stmt, error) { return nil, errors.New("not in this fake") }

func (c *fakeConn) Close() error { return c.f.note("close", new(func() error)) }

func (c *fakeConn) Begin() (driver.Tx, error) { return nil, errors.New("not in this fake") }
func (c *fakeConn) Commit() error             { return c.f.note("commit", &c.f.commit) }
func (c *fakeConn) Rollback() error           { return c.f.note("rollback", &c.f.rollback) }

func (c *fakeConn) BeginTx(ctx context.Context, _ driver.TxOptions) (driver.Tx, error) {
	if err := c.f.note("begin", &c.f.begin); err != nil {
		return nil, err
	}
	return c, ctx.Err()
}

func (c *fakeConn) ExecContext(ctx context.Context, _ string, _ []driver.NamedValue) (driver.Result, error) {
	var none func() error
	return driver.ResultNoRows, errors.Join(c.f.note("exec", &none), ctx.Err())
}

func (c *fakeConn) QueryContext(context.Context, string, []driver.NamedValue) (driver.Rows, error) {
	var none func() error
	return &oneRow{}, c.f.note("query", &none)
}

// oneRow are the rows of SELECT 1.
type oneRow struct{ read bool }

func (r *oneRow) Columns() []string { return []string{"1"} }
func (r *oneRow) Close() error      { return nil }

func (r *oneRow) Next(dest []driver.Value) error {
	if r.read {
		return errors.New("EOF")
	}
	r.read = true
	dest[0] = int64(1)
	return nil
}

// stage is a database, and two clients of one lock engine, in a bubble of virtual time.
type stage struct {
	t     *testing.T
	db    *sql.DB
	f     *fake
	locks *interlock.Client
	other *interlock.Client
	m     *interlock.Mutex
}

func staged(t *testing.T, play func(t *testing.T, s *stage)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := memlock.New(nil)
		f := &fake{}
		s := &stage{t: t, f: f, db: sql.OpenDB(f), locks: open(t, d), other: open(t, d.Peer())}
		s.m = s.locks.Mutex("a", nil)
		defer func() {
			_ = s.db.Close()
			_, _ = s.locks.Close(), s.other.Close()
		}()
		play(t, s)
	})
}

func open(t *testing.T, d *memlock.Driver) *interlock.Client {
	t.Helper()
	c, err := interlock.New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = d.Close() })
	return c
}

// free reports whether another client can take the lock now, and gives it back.
func (s *stage) free() bool {
	s.t.Helper()
	l, err := s.other.TryLock(context.Background(), "a")
	if errors.Is(err, interlock.ErrHeld) {
		return false
	}
	if err != nil {
		s.t.Errorf("TryLock: %v", err)
		return false
	}
	if err := l.Unlock(context.Background()); err != nil {
		s.t.Errorf("Unlock: %v", err)
	}
	return true
}

// wantFree fails unless the lock is free (want) or held (not want).
func (s *stage) wantFree(want bool, when string) {
	s.t.Helper()
	if got := s.free(); got != want {
		s.t.Errorf("%s the lock is free: %v, want %v", when, got, want)
	}
}

// held makes the database check at each COMMIT and ROLLBACK that the lock is still held.
func (s *stage) held() {
	look := func(when string) func() error {
		return func() error {
			s.wantFree(false, "at the "+when)
			return nil
		}
	}
	s.f.commit, s.f.rollback = look("commit"), look("rollback")
}

// run calls Run with a function that executes one statement and then calls then.
func (s *stage) run(ctx context.Context, then func(ctx context.Context) error) error {
	return Run(ctx, s.db, s.m, nil, func(ctx context.Context, tx *sql.Tx) error {
		if _, err := tx.ExecContext(ctx, "INSERT"); err != nil {
			return err
		}
		return then(ctx)
	})
}

func fine(context.Context) error { return nil }
