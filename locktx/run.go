package locktx

import (
	"context"
	"database/sql"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
)

// Run: lock, transaction and fence in one call. tx.go begins the transaction, end.go ends it.

// Options configures Run; nil is the zero value.
type Options struct {
	// TxOptions are the options of the transaction, with its isolation level. The default is the database's.
	TxOptions *sql.TxOptions

	// Guard is a fence that is checked in the transaction, before fn and before the commit. It keeps a holder that was
	// overtaken from changing anything, no matter what stood still and how long. Its table must exist; see
	// [fence.SQLGuard.CreateTable]. It costs two to four statements. The default is none.
	Guard *fence.SQLGuard

	// Resource is the guard's name for what the lock protects. The default is the lock's name.
	Resource string

	_ struct{}
}

// Run runs fn in a transaction under m. It locks, begins, checks the guard, calls fn, and checks the lock and the guard
// again. Then it commits, or rolls back if anything failed, and unlocks when the database has answered.
//
// fn's context carries the lock's owner, so what fn locks with it re-enters. It ends with ctx and the moment the lock
// is lost; fn should pass it to its statements, so that they stop then. fn must not end the transaction, nor use it
// after it has returned. If fn panics or calls runtime.Goexit, the transaction is rolled back and the lock released
// before that goes on.
//
// Run returns nil if the transaction was committed. An [*OutcomeError] says what became of one whose COMMIT was sent:
// see [OutcomeOf]. Any other error means that nothing was changed. It is fn's own or the database's. Or it says that
// the lock could not be had (as of Mutex.Lock), was lost (*interlock.LostError, joined to fn's error), or was overtaken
// (*fence.StaleError). If the lock was lost while the database committed, the error is an OutcomeError with Committed.
// With a Guard it is nil, because the guard kept everybody else out to the end.
//
// When the outcome is Unknown the lock is not released: it runs out with its lease. Run returns at most 50 ms after the
// end of ctx and of fn, also when the database hangs. [Tx.Commit] says how long it waits for a COMMIT if ctx does not
// end.
func Run(
	ctx context.Context, db *sql.DB, m *interlock.Mutex, opts *Options, fn func(ctx context.Context, tx *sql.Tx) error,
) error {
	switch {
	case db == nil:
		return errors.New("locktx: run: the database is nil")
	case m == nil:
		return errors.New("locktx: run: the mutex is nil")
	case fn == nil:
		return errors.New("locktx: run: the function is nil")
	}
	r := run{fn: fn}
	if opts != nil {
		r.opts = *opts
	}
	lease, err := m.Lock(ctx)
	if err != nil {
		return err
	}
	r.lease = lease
	if r.opts.Resource == "" {
		r.opts.Resource = lease.Name()
	}
	work := lease.Context(ctx)
	tx, err := r.begin(ctx, work, db)
	if err != nil {
		return err
	}
	return r.within(work, tx)
}

// run is one call of Run.
type run struct {
	opts  Options
	lease *interlock.Lease
	fn    func(ctx context.Context, tx *sql.Tx) error
}

// begin starts the transaction and binds the lock to it. If that fails, also because the driver panics, the lock is
// released: nothing was done, so there is nothing to wait for.
func (r *run) begin(ctx, work context.Context, db *sql.DB) (tx *Tx, err error) {
	defer func() {
		if tx == nil {
			bounded, cancel := graceful(ctx)
			defer cancel()
			err = errors.Join(err, letGo(bounded, []*interlock.Lease{r.lease}, false))
		}
	}()
	tx, err = begin(ctx, work, db, r.opts.TxOptions)
	if err == nil {
		tx.Hold(r.lease)
	}
	return tx, err
}

// within does the work in a transaction that has begun, and ends it.
func (r *run) within(work context.Context, tx *Tx) error {
	defer func() { _ = tx.Rollback() }() // after a panic or Goexit; otherwise it has ended already
	err := r.work(work, tx)
	if err != nil {
		tx.claim()
		_, lost := tx.rollback() // what the database said adds nothing to err: without a COMMIT nothing was changed
		return errors.Join(err, other(err, lost))
	}
	err = tx.Commit()
	if OutcomeOf(err) == Committed && r.opts.Guard != nil {
		return nil
	}
	return err
}

// work checks, calls fn, and checks again.
func (r *run) work(work context.Context, tx *Tx) error {
	if err := r.check(work, tx); err != nil {
		return err
	}
	if err := r.fn(work, tx.Tx); err != nil {
		return err
	}
	return r.check(work, tx)
}

// check asks whether the lock is held, and the guard whether nobody newer was there.
func (r *run) check(work context.Context, tx *Tx) error {
	if work.Err() != nil {
		return fmt.Errorf("locktx: rolled back: %w", whyEnded(work))
	}
	stamp, held := r.lease.Stamp()
	if !held {
		return r.lease.Err()
	}
	if r.opts.Guard == nil {
		return nil
	}
	return r.opts.Guard.Check(work, tx.Tx, r.opts.Resource, stamp)
}

// other returns lost unless err says so already.
func other(err, lost error) error {
	if errors.Is(err, interlock.ErrLost) {
		return nil
	}
	return lost
}
