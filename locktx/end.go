package locktx

import (
	"context"
	"database/sql"
	"database/sql/driver"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock"
)

// How a transaction ends: Commit and Rollback, the wait for the database, and what its answer means. tx.go completes
// the transaction then, and letgo.go releases the locks or leaves them to run out.

// probeTime bounds the question whether a connection still answers after a COMMIT that failed.
const probeTime = time.Second

// Commit commits the transaction and completes it. It returns nil if it was committed and all its locks were released,
// and an [*OutcomeError] if it was sent and anything is not as it should be. If Begin's context has ended, a lease of
// Hold was lost or released meanwhile, or its client is being closed, Commit rolls back instead and returns why. A
// second Commit, or one after Rollback, returns sql.ErrTxDone.
//
// Commit waits for the database until a moment after that context ends. If locks are bound to the transaction, it waits
// no longer than the first of them would last without another renewal, or five seconds if that is more. So nobody is
// kept waiting for a database that hangs. The outcome is Unknown then, and the locks run out. For COMMITs that may take
// longer than a lease, take the locks with a longer one. While the COMMIT is under way, neither the end of MaxHold nor
// Client.Close gives the locks back ([interlock.Lease.Pending]).
//
// A database that answers a COMMIT with an error has rolled back. If the connection does not answer any more, or the
// database itself says that it cannot tell, the outcome is Unknown. A call of the driver that hangs is left behind in a
// goroutine, which ends with the driver. So give the driver a time limit for reading (as go-sql-driver/mysql's
// readTimeout).
func (t *Tx) Commit() error {
	if !t.claim() {
		return sql.ErrTxDone
	}
	limit, over, why := t.embark()
	defer over()
	if why != nil {
		_, lost := t.rollback()
		return errors.Join(fmt.Errorf("locktx: rolled back instead of committed: %w", why), other(why, lost))
	}
	return t.commit(limit)
}

// embark makes sure that nobody gives t's locks back until over is called, or says why t must not be committed. The
// check that a lock is held and the mark that it is pending are one step (Lease.Pending). So the lock cannot be given
// back in between. limit is how long the COMMIT may take; 0 means no limit, because it keeps nobody waiting.
func (t *Tx) embark() (limit time.Duration, over func(), why error) {
	t.mu.Lock()
	holds := slices.Clone(t.holds)
	t.mu.Unlock()
	var overs []func()
	over = func() {
		for _, each := range overs {
			each()
		}
	}
	if t.ctx.Err() != nil {
		return 0, over, whyEnded(t.ctx)
	}
	for i, l := range holds {
		// The shortest counts: a waiter for any one of the locks waits that long.
		if left := max(patience, lasts(l)); i == 0 || left < limit {
			limit = left
		}
		each, err := l.Pending()
		if err != nil {
			return 0, over, fmt.Errorf("the lock %q: %w", l.Name(), err)
		}
		overs = append(overs, each)
	}
	return limit, over, nil
}

// lasts returns how long l is held without another renewal.
func lasts(l *interlock.Lease) time.Duration {
	end := l.Deadline()
	if end.IsZero() {
		return unleased
	}
	return time.Until(end)
}

// Rollback rolls the transaction back and completes it. It waits for the database until a moment after the end of
// Begin's context, and for five seconds at most. If the database has not answered by then the transaction is completed
// in the background, when the answer comes or after five seconds. After five seconds its locks are left to run out.
// After Commit or Rollback it returns sql.ErrTxDone and changes nothing, so it can be deferred.
func (t *Tx) Rollback() error {
	if !t.claim() {
		return sql.ErrTxDone
	}
	return errors.Join(t.rollback())
}

// answer is what the database has said, as far as it can be known.
type answer struct {
	outcome Outcome
	err     error
}

// ask runs a call of database/sql that takes no context, in a goroutine that also gives the connection back. The
// channel has room for the answer, so the goroutine ends although nobody waits any more.
func (t *Tx) ask(call func() answer) <-chan answer {
	said := make(chan answer, 1)
	go func() { // ends with the call, which only the driver can end
		a := call()
		t.stop()
		_ = t.conn.Close() // to the pool; if the connection is broken, a has said so
		said <- a
	}()
	return said
}

// commit is Commit after the claim. limit 0 is no limit.
func (t *Tx) commit(limit time.Duration) error {
	bounded, cancel := graceful(t.ctx)
	defer cancel()
	var late <-chan time.Time
	if limit > 0 {
		timer := time.NewTimer(limit)
		defer timer.Stop()
		late = timer.C
	}
	a, came := await(t.ask(t.commitNow), bounded.Done(), late)
	if !came {
		t.stop() // some drivers end the call with it
		a = answer{
			Unknown,
			fmt.Errorf("the database did not answer the COMMIT in %v, for which its locks last",
				limit.Round(time.Millisecond)),
		}
		if bounded.Err() != nil {
			a.err = fmt.Errorf("the database did not answer the COMMIT in time: %w", whyEnded(t.ctx))
		}
	}
	lost := t.complete(bounded, a.outcome, a.outcome != Unknown)
	if err := errors.Join(a.err, lost); err != nil {
		return &OutcomeError{Outcome: a.outcome, Err: err}
	}
	return nil
}

// await returns what the database has said, unless one of the others ends first. Either may be nil: without bound locks
// a COMMIT has no late.
func await(said <-chan answer, end <-chan struct{}, late <-chan time.Time) (a answer, came bool) {
	select {
	case a = <-said:
		return a, true
	case <-end:
	case <-late:
	}
	select {
	case a = <-said: // in the same instant: an answer is worth more
		return a, true
	default:
		return a, false
	}
}

// commitNow sends the COMMIT and finds out what became of it.
func (t *Tx) commitNow() answer {
	err := t.Tx.Commit()
	switch {
	case err == nil:
		return answer{Committed, nil}
	case errors.Is(err, sql.ErrTxDone):
		return answer{Unknown, fmt.Errorf("something else has ended the transaction: %w", err)}
	case undetermined(err) || !t.answers():
		return answer{Unknown, err}
	}
	return answer{RolledBack, err}
}

// answers reports whether the transaction's connection still answers. Answers come in the order of the questions. So if
// it does, the COMMIT was answered too, and what the driver has returned is the database's own error.
func (t *Tx) answers() bool {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), probeTime)
	defer cancel()
	// SQLite keeps a transaction open that it could not commit. Where there is none any more this is a warning, or an
	// error.
	_, _ = t.conn.ExecContext(ctx, "ROLLBACK")
	var one int
	return t.conn.QueryRowContext(ctx, "SELECT 1").Scan(&one) == nil
}

// undetermined reports whether err itself says that the outcome is unknown. That is so if err is about the connection,
// or if its SQLSTATE says so: of a connection, of an operator who ended it, or of a statement whose completion is
// unknown.
func undetermined(err error) bool {
	if errors.Is(err, driver.ErrBadConn) || errors.Is(err, sql.ErrConnDone) {
		return true
	}
	var told interface{ SQLState() string }
	if !errors.As(err, &told) {
		return false
	}
	state := told.SQLState()
	return strings.HasPrefix(state, "08") || strings.HasPrefix(state, "57P") || state == "40003"
}

// rollback is Rollback after the claim. It returns what the database said and, separately, what was wrong with the
// locks.
func (t *Tx) rollback() (err, lost error) {
	bounded, cancel := graceful(t.ctx)
	defer cancel()
	limit := time.NewTimer(patience)
	defer limit.Stop()
	return t.rolledBack(bounded, t.ask(t.rollbackNow), limit.C)
}

// rolledBack waits for the answer to a ROLLBACK, and completes the transaction.
func (t *Tx) rolledBack(bounded context.Context, said <-chan answer, late <-chan time.Time) (err, lost error) {
	a, came := await(said, bounded.Done(), late)
	switch {
	case came:
		return a.err, t.complete(bounded, a.outcome, a.outcome != Unknown)
	case bounded.Err() != nil:
		go t.rollbackLater(said) // ends with the answer, or after patience
		return t.unanswered(), nil
	}
	t.stop() // as for a COMMIT: what nobody waits for is not to keep a connection
	return t.unanswered(), t.complete(bounded, RolledBack, false)
}

// rollbackNow sends the ROLLBACK. If the connection is broken it cannot, and need not: without a COMMIT the database
// rolls back by itself.
func (t *Tx) rollbackNow() answer {
	err := t.Tx.Rollback()
	if errors.Is(err, sql.ErrTxDone) {
		return answer{Unknown, fmt.Errorf("something else has ended the transaction: %w", err)}
	}
	return answer{RolledBack, err}
}

// rollbackLater completes a transaction whose ROLLBACK was not answered in the caller's time. It runs in a goroutine of
// its own.
func (t *Tx) rollbackLater(said <-chan answer) {
	limit := time.NewTimer(patience)
	defer limit.Stop()
	bounded, cancel := context.WithTimeout(context.WithoutCancel(t.ctx), 2*patience)
	defer cancel()
	a, came := await(said, nil, limit.C)
	if !came {
		t.stop()
		a.outcome = RolledBack
	}
	_ = t.complete(bounded, a.outcome, came && a.outcome != Unknown) // there is nobody left to tell
}

// unanswered is the error of a ROLLBACK without an answer.
func (t *Tx) unanswered() error {
	return errors.Join(errors.New("locktx: the database did not answer the ROLLBACK in time"), whyEnded(t.ctx))
}
