package locktx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/interlock-go/interlock"
)

// A transaction that tells of its completion. end.go ends it.

// Tx is a transaction that tells of its completion. [Begin] makes it, and its own Commit or Rollback end it; do not
// call those of the embedded sql.Tx, which Tx would not notice. Everything else is as with sql.Tx, except that the end
// of Begin's context does not roll it back by itself. It is safe for concurrent use as far as sql.Tx is.
type Tx struct {
	*sql.Tx

	ctx  context.Context    //nolint:containedctx // the caller's: Commit and Rollback have no parameter for it
	conn *sql.Conn          // the transaction's, to ask it something after a failed COMMIT
	stop context.CancelFunc // ends the context that database/sql has of the transaction

	// Guards what follows; nothing is called under it.
	mu        sync.Mutex
	ending    bool    // Commit or Rollback has been called
	outcome   Outcome // 0 until the transaction is complete
	abandoned bool    // it is complete, and its locks were left to run out
	todo      []func(Outcome)
	holds     []*interlock.Lease
}

// Begin starts a transaction. ctx bounds the start, and later the waiting in Commit and Rollback, but its end does not
// roll back by itself. database/sql would do that in a goroutine of its own, and nobody could tell when it is done. So
// end the transaction yourself, as in "defer tx.Rollback()". A Commit after the end of ctx rolls back. Statements take
// contexts of their own.
//
// It costs what BeginTx costs. The transaction has a connection of db's pool until it is complete, as always.
func Begin(ctx context.Context, db *sql.DB, opts *sql.TxOptions) (*Tx, error) {
	if db == nil {
		return nil, errors.New("locktx: begin: the database is nil")
	}
	return begin(ctx, ctx, db, opts)
}

// begin starts a transaction. The start ends with start, the later waiting with ctx: for Run the former is the work's
// context, which a loss ends.
func begin(ctx, start context.Context, db *sql.DB, opts *sql.TxOptions) (*Tx, error) {
	if start.Err() != nil {
		return nil, fmt.Errorf("locktx: begin: %w", whyEnded(start))
	}
	// A connection of the pool may have broken while it was idle. database/sql hides that in DB.BeginTx, but not in
	// Conn.BeginTx. There are no more broken ones than idle ones.
	for left := db.Stats().Idle + 1; ; left-- {
		t, err := beginOnce(ctx, start, db, opts)
		if err == nil {
			return t, nil
		}
		if left == 0 || !errors.Is(err, driver.ErrBadConn) {
			return nil, fmt.Errorf("locktx: begin: %w", err)
		}
	}
}

// beginOnce is one attempt of begin, on one connection. The context that database/sql gets ends only by stop, never by
// the caller's: see Begin.
func beginOnce(ctx, start context.Context, db *sql.DB, opts *sql.TxOptions) (*Tx, error) {
	conn, err := db.Conn(start)
	if err != nil {
		return nil, err
	}
	inner, stop := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(start, stop)
	returned := false
	defer func() {
		if !returned {
			forget()
			stop()
			discard(conn)
		}
	}()
	tx, err := conn.BeginTx(inner, opts)
	returned = true
	if !forget() { // start ended, so database/sql is rolling back if it has begun
		if err == nil {
			_ = tx.Rollback() // whichever comes first; nothing has been done in it
		}
		err = whyEnded(start) // what the driver says is only that it was told to stop
	}
	if err != nil {
		stop()
		_ = conn.Close() // the error before says more
		return nil, err
	}
	return &Tx{Tx: tx, ctx: ctx, conn: conn, stop: stop}, nil
}

// discard closes the driver's own connection after the driver has panicked in it. database/sql then counts the
// connection as in use for ever, and its Conn.Close would never return. But the server must not keep a session that
// nobody ends.
func discard(conn *sql.Conn) {
	_ = conn.Raw(func(of any) error { // what it says is of no use: the panic goes on
		if c, is := of.(driver.Conn); is {
			_ = c.Close()
		}
		return nil
	})
}

// OnCompletion has fn called with the outcome once the transaction is complete, in the order of registration, while the
// leases of Hold are still held. It is called in the goroutine that calls Commit or Rollback, or in another one if that
// goroutine gave up waiting for the database. If the transaction is complete already, it is called at once. It should
// be short, must not use the transaction any more, and may look for one outcome only.
func (t *Tx) OnCompletion(fn func(Outcome)) {
	if fn == nil {
		return
	}
	t.mu.Lock()
	done := t.outcome
	if done == 0 {
		t.todo = append(t.todo, fn)
	}
	t.mu.Unlock()
	if done != 0 {
		fn(done)
	}
}

// Hold binds l to the transaction. It is unlocked when the transaction is complete, whatever the outcome, and left to
// run out if that is unknown. Do not unlock it yourself. If the transaction is complete already, l is let go at once.
func (t *Tx) Hold(l *interlock.Lease) {
	if l == nil {
		return
	}
	t.mu.Lock()
	done, left := t.outcome != 0, t.abandoned
	if !done && !slices.Contains(t.holds, l) {
		t.holds = append(t.holds, l)
	}
	t.mu.Unlock()
	if done {
		bounded, cancel := graceful(t.ctx)
		defer cancel()
		_ = letGo(bounded, []*interlock.Lease{l}, left) // there is nobody to tell
	}
}

// claim makes the caller the one who ends the transaction. It returns false if another call has claimed it.
func (t *Tx) claim() bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	first := !t.ending
	t.ending = true
	return first
}

// complete calls what was registered and lets the locks go: it releases them if the database has answered, and
// otherwise leaves them to run out. It returns what was wrong with them.
func (t *Tx) complete(bounded context.Context, o Outcome, answered bool) (err error) {
	t.mu.Lock()
	t.outcome, t.abandoned = o, !answered
	todo, holds := t.todo, t.holds
	t.todo, t.holds = nil, nil
	t.mu.Unlock()
	// Deferred, so that a function that panics keeps neither the others from being called nor the locks from being let
	// go.
	defer func() { err = letGo(bounded, holds, !answered) }()
	for _, fn := range slices.Backward(todo) {
		defer fn(o)
	}
	return nil
}
