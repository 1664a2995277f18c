// Package locktx holds locks for as long as a database transaction lasts. They are given back when the database has
// committed or rolled back, and never before.
//
// A lock around a transaction is of no use if it is released before the COMMIT. The next owner reads the old state, and
// both insert. That happens with a deferred Unlock in a function whose caller commits, and wherever a framework commits
// after the function. The lock is released too late, or never, if only the successful path releases it. [Run] does all
// of it:
//
//	err := locktx.Run(ctx, db, locks.Mutex("user:ann", nil), nil, func(ctx context.Context, tx *sql.Tx) error {
//		... // check, then insert
//	})
//
// # Which function do I want?
//
//   - The usual one, a lock around a whole transaction: [Run].
//   - Code that runs its own transaction: [Begin]. [Tx.Hold] binds a lease to it, [Tx.OnCompletion] a function.
//   - What became of a transaction whose COMMIT failed: [OutcomeOf].
//   - A program that uses GORM: the module adapters/gormlock.
//
// # What is promised
//
// A lock is released only after the database has answered the COMMIT or the ROLLBACK, also on a panic, on
// runtime.Goexit and when the context ends. Neither [interlock.Client.Close] nor the end of MaxHold gives it back while
// a COMMIT is under way.
//
// When nobody can know whether the COMMIT was done (the connection broke, or the database did not answer in time, see
// [Tx.Commit]) the lock is not released. It is renewed no more and runs out ([interlock.Lease.Abandon]), so that
// whatever is still under way has the rest of the lease to end in. When the connection breaks before a COMMIT was sent,
// the transaction can only be rolled back, and the lock is released. The database may need a moment longer to undo it;
// its own row locks keep others out meanwhile.
//
// A transaction is not committed after its context has ended or its lock was lost. Between the last check of the lock
// and the end of the COMMIT the lock can still be lost. Only Options.Guard, a fence in the same transaction, makes that
// harmless.
//
// # Without a lock
//
// Often the database can do it alone: a unique index refuses the second insert, SELECT ... FOR UPDATE keeps others from
// a row that exists, pg_advisory_xact_lock is released by the transaction's end. A lock of this package is for work
// that spans several databases or services, and for keeping waiters off the database.
package locktx
