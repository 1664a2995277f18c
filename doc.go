// Package interlock provides distributed locks whose call site reads like sync.Mutex, which tell the holder the moment
// the lock is gone, and which hand every holder a fencing token.
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
// [Client.Lock] returns a [Lease] instead, which is unlocked by hand: nobody can unlock what he did not lock.
//
// # Guarantees
//
// At any time at most one owner holds a mutex, as its engine sees it; one writes or any number read under a read/write
// lock; and no more permits of a semaphore are out than there are. A holder believes in its hold only inside the trust
// window: from before the request was sent, for the lease less an allowance for drifting clocks. When the window ends
// unrenewed, the hold is lost in this process before the engine can give the lock to another. So holders that stop when
// they are told never overlap, as long as clocks run at rates that differ by less than 1 % and the assumptions in the
// engine's own Guarantees hold.
//
// No lock with a lease can promise more than that: a process that stands still between its last look and its write
// cannot be told anything. What always helps is a fence. [Lease.Stamp] carries a token that grows with every
// acquisition; a resource that remembers the newest one refuses a holder that was overtaken.
//
// # Owners
//
// Locks are re-entrant by owner. Each Lock at the top level makes a new, anonymous owner; [Lease.Context] carries it
// into the work, and every Lock with that context re-enters, in whichever goroutine. [WithOwner] names an owner, which
// may then re-enter from another process too. The lock is free when the owner's last hold ends.
//
// # Readers, writers, permits
//
// [Client.RWMutex] is a lock for many readers or one writer, with an upgradeable read that turns into the write without
// letting another writer in between, and writes that turn into reads. [Client.Semaphore] is one with a number of
// permits. Both are fair, and each hold has a lease of its own. Engines that lack them say why: ErrUnsupported.
//
// # Elections, latches, conditions
//
// [Client.Election] is a lock whose holder has a value that everybody can read and observe. [Client.Latch] is a count
// on whose end any number may wait. [Client.Cond] lets who holds a mutex give it up until another signals.
//
// # Losing a lock
//
// A lease is renewed in the background until it is unlocked. [Lease.Lost] is closed, contexts of [Lease.Context] are
// cancelled with the *[LostError] as their cause, and [Lease.Err], [Lease.Stamp] and [Lease.Unlock] say so, as soon as
// the engine reports that the hold is gone, or at [Lease.Deadline] if no renewal was confirmed by then.
//
// # Waiting
//
// Goroutines of one client that want the same lock wait in one line, and only the first is known to the engine. A lock
// may pass from one to the next without a message to the engine, at most [Options.LocalHandoffs] times or for
// [Options.LocalHandoffTime], and each time with a larger token.
//
// A process that takes the same lock again and again can keep it in between: see [LockOptions].Retain. [Lease.Wanted]
// tells a holder that another process waits.
//
// # Errors
//
// Four failures are never mixed: [ErrHeld] (another has it), [ErrLost] (you had it), [ErrRefused] (the engine said no,
// and why; asking again does not help) and [ErrUnavailable] (the engine did not answer, so nobody knows, or it cannot
// be reached). Code that does not know of refusals sees them as ErrUnavailable, so look for ErrRefused first. An error
// of a wait that its context ended also matches the context's error.
//
// # Engines
//
// Package memlock (mem://) keeps locks in this process, for tests. Package filelock (file://) keeps them in files on
// one machine and needs no server. Those with a server are modules of their own below this one, which bring their
// client library: redislock (redis://, rediss://, redis+sentinel://, redis+cluster://) with redislock/redlock
// (redlock://), zklock (zk://), etcdlock (etcd://), mysqllock (mysql://) and pglock (postgres://).
//
// An engine is linked in by importing its package, for its side effect if it is opened by URL:
//
//	import _ "github.com/interlock-go/interlock/redislock"
//
// docs/evidence/engines.md in the repository shows what each engine promises, as measured by package drivertest.
package interlock
