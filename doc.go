// Package interlock provides distributed locks whose call site reads like sync.Mutex. They tell the holder the moment
// the lock is lost, and give every holder a fencing token.
//
//	locks, err := interlock.Open(ctx, "file:///var/lib/app/locks", nil) // the scheme picks the engine
//	if err != nil {
//		return err
//	}
//	defer locks.Close()
//
//	err = locks.Do(ctx, "stock:42", func(ctx context.Context) error {
//		// ctx is cancelled, with the reason, the moment the lock is lost; a Lock with it re-enters.
//		return deduct(ctx)
//	})
//
// [Client.Lock] returns a [Lease] instead. Only the returned Lease can unlock it.
//
// # Which type do I want?
//
// Most programs need only [Client.Do], or [Client.Lock] with [Lease.Context].
//
//   - One owner at a time: Client.Do for a function, Client.Lock for a [Lease], [Client.Mutex] for a lock with options.
//   - Skip the work if another owner is at it: [Client.TryDo], or [Client.TryLock] for a Lease.
//   - Many readers or one writer: [Client.RWMutex].
//   - At most N permits at a time: [Client.Semaphore].
//   - One leader, which others can look up: [Client.Election], and [Election.Lead] to lead again after a loss.
//   - A bound on the wait for a lock that is no context's: [LockOptions].Wait.
//   - Several mutexes together, all or none: [Client.Multi].
//   - Wait until a count has reached zero: [Client.Latch].
//   - Wait under a mutex for what another owner does: [Client.Cond].
//   - Pass a hold to another process: [Lease.Handle] and [Client.Adopt].
//   - A lock for as long as a database transaction: package locktx.
//   - A resource that refuses a holder that was overtaken: [Lease.Stamp] and package fence.
//   - Tests of a program that uses locks: package interlocktest.
//
// # Guarantees
//
// At any time, as the engine sees it, at most one owner holds a mutex. A read/write lock has one writer or any number
// of readers, and a semaphore never grants more permits than its limit. A holder trusts its hold only inside the trust
// window: from the moment before it sent the request, for the lease minus a clock-drift allowance. When the window ends
// without a renewal, the hold is lost in this process before the engine can grant the lock to another. So holders that
// stop when they are told never overlap, unless an operator breaks or deletes a hold ([Client.Break]): then the next
// owner may get in just before the holder is told. That rests on clocks whose rates differ by less than 1 %, and on the
// assumptions in the engine's own Guarantees.
//
// No lock with a lease can promise more than that. A process that stands still between its last check and its write
// cannot be told anything. A fence always helps. [Lease.Stamp] carries a token that grows with every acquisition; a
// resource that remembers the newest one refuses a holder that was overtaken.
//
// # Owners
//
// Locks are re-entrant by owner. Each Lock at the top level makes a new, anonymous owner. [Lease.Context] carries it
// into the work, and every Lock with that context re-enters, in whichever goroutine. [WithOwner] names an owner. On
// engines that have named owners (Redis) it may re-enter from another process too. The lock is free when the owner's
// last hold ends.
//
// # Readers, writers, permits
//
// [Client.RWMutex] is a lock for many readers or one writer. Its upgradeable read turns into the write without letting
// another writer in between, and a write turns into a read. [Client.Semaphore] is a lock with a number of permits. Both
// are fair as far as the engine keeps an order (driver.Order), and each hold has a lease of its own. Engines that lack
// them return ErrUnsupported with the reason.
//
// # Elections, latches, conditions
//
// [Client.Election] is a lock whose holder has a value that everybody can read and observe. [Client.Latch] is a count;
// any number of goroutines and processes can wait for it to reach zero. [Client.Cond] is the condition of a mutex: Wait
// releases the mutex and blocks until another owner signals.
//
// # Losing a lock
//
// A lease is renewed in the background until it is unlocked. A hold is lost as soon as the engine reports that it is
// gone, or at [Lease.Deadline] if no renewal was confirmed by then. At that moment [Lease.Lost] is closed, contexts of
// [Lease.Context] are cancelled with the *[LostError] as their cause, and [Lease.Err], [Lease.Stamp] and [Lease.Unlock]
// report the loss.
//
// # Waiting
//
// Goroutines of one client that want the same lock wait in one line, and only the first is known to the engine. A lock
// may pass from one to the next without a message to the engine, each time with a larger token. It passes at most
// [Options.LocalHandoffs] times or for [Options.LocalHandoffTime].
//
// A process that takes the same lock again and again can keep it in between: see [LockOptions].Retain. [Lease.Wanted]
// tells a holder that another process waits.
//
// # Errors
//
// Four failures are never mixed. [ErrHeld]: another owner has it. [ErrLost]: you had it. [ErrRefused]: the engine said
// no, and why; asking again does not help. [ErrUnavailable]: the engine did not answer, so the outcome is unknown, or
// it cannot be reached. Code that does not know of refusals sees them as ErrUnavailable, so check for ErrRefused first.
// When the context of a wait ends it, the error also matches the context's error.
//
// # Engines
//
// Package memlock (mem://) keeps locks in this process, for tests. Package filelock (file://) keeps them in files on
// one machine and needs no server. Engines with a server are modules of their own below this one, which bring their
// client library. These are redislock (redis://, rediss://, redis+sentinel://, redis+cluster://) with redislock/redlock
// (redlock://), zklock (zk://), etcdlock (etcd://), mysqllock (mysql://) and pglock (postgres://).
//
// An engine is linked in by importing its package, for its side effect if it is opened by URL:
//
//	import _ "github.com/interlock-go/interlock/redislock"
//
// docs/evidence/engines.md in the repository shows what each engine promises, as measured by package drivertest.
package interlock
