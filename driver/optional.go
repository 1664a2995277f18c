package driver

import (
	"context"
	"iter"
	"time"
)

// Optional abilities, the small ones. Without one of them the portable layer refuses what needs it, or does it in more
// steps.

// Renewer is implemented by every Leases engine, and by every Sessions engine that does not lack Recalls. The latter is
// asked only about holds that are retained or were (see Renewal.Retained). There a hold lasts as long as the session,
// whatever Lease says.
type Renewer interface {
	// Renew makes each hold of the batch last for its Lease from now, or longer if it already did. It never shortens
	// one, except as Renewal.Retained says, and never revives one that has ended. It calls done exactly once for each
	// index, as the answers come in and from any goroutine, and returns after the last. So a slow shard does not delay
	// the others. nil means renewed. An error matching ErrLost means that the hold is gone (a *LostError says why). Any
	// other means unknown, and the caller asks again for as long as it trusts the hold.
	//
	// One batch costs one round trip for each shard.
	Renew(ctx context.Context, batch []Renewal, done func(i int, err error))
}

// Reconnector is implemented by Leases engines whose servers may forget what they have granted, in a restart or a
// failover, and whose drivers see that a connection has ended. Without it a holder learns of that by its next renewal.
type Reconnector interface {
	// OnReconnect has f called, in a goroutine of the driver's, when a connection to a server has ended and there is a
	// new one, not before: the portable layer renews everything that is held then. Calls that come close together may
	// become one, and there may be one for nothing. f does not wait for a server. After stop it is not called any more.
	OnReconnect(f func()) (stop func())
}

// Renewal asks for more time for one hold.
type Renewal struct {
	Key
	ID    string        // of the hold
	Lease time.Duration // how long it lasts from now

	// What operators see is refreshed with each renewal, because a hold may have passed to another owner inside the
	// process.
	Owner string // id of the owner; empty if Retained
	Label string // what the owner wants operators to see
	Pass  int    // how often the hold has passed: the token now in use is the first of the block plus Pass

	// Retained says that nobody holds the lock any more; see Request.Retains. Operators see that, and no owner, until a
	// renewal of a later Pass comes. The hold lasts for Lease from now, also if that is less than before. It does not
	// get shorter if the engine has heard of a later Pass, because then the renewal is a late one. Somebody holds the
	// lock again. So an engine never forgets a later Pass for an earlier one. Until a later Pass comes the lease stays
	// short. Late renewals without Retained, and late copies of the request, are answered as usual and lengthen
	// nothing.
	//
	// On Sessions engines such a renewal shows operators that nobody holds the lock, and the next one of a later Pass
	// that somebody does. It comes at least each third of the session's timeout while the lock is retained, and calls
	// Wanted if others wait.
	Retained bool
}

// Requeuer is implemented by engines that can release a lock and queue for it again in one step. That saves a round
// trip when a hold has been passed on locally as often as allowed. Without it the portable layer releases, then
// acquires.
type Requeuer interface {
	// Requeue releases give and acquires r atomically: r is queued behind all waiters. If there is no hold
	// that give could end (it ended earlier, or was never granted), r takes nothing, and the error matches
	// ErrLost. Any other error says nothing about either part unless it is definite in the sense of [Driver]; the
	// caller then settles both.
	Requeue(ctx context.Context, give *Release, r *Request) (Grant, error)
}

// Inspector is implemented by engines that can list their locks.
type Inspector interface {
	// Locks yields the locks that are held or waited for and whose name starts with prefix, in no promised order. The
	// list is not a snapshot: each LockInfo is consistent in itself. A lock that cannot be read is marked
	// ([LockInfo].Unreadable) and the list goes on: one foreign key must not hide all locks behind it. An
	// error ends the sequence.
	Locks(ctx context.Context, prefix string) iter.Seq2[LockInfo, error]
}

// Breaker is implemented by engines on which a hold can be ended from outside.
type Breaker interface {
	// Break ends all holds of the owner whose token block contains token and tells them through Request.Lost
	// ([LostBroken]). It returns only after a renewal or release of those holds can no longer succeed. On a free lock
	// it returns ErrNotHeld, and if token is not a current one a *HeldError that names a current one.
	Break(ctx context.Context, key Key, token uint64) error
}

// Diagnoser is implemented by engines that can judge their server's set-up.
type Diagnoser interface {
	// Diagnose runs the checks and returns what each found, best first to fix. It changes nothing.
	Diagnose(ctx context.Context) []Finding
}

// Level is how much a Finding matters.
type Level string

const (
	// LevelOK says that the check passed.
	LevelOK Level = "ok"
	// LevelWarn says that locks work but a stated guarantee is weaker than it could be.
	LevelWarn Level = "warn"
	// LevelFail says that locks do not work, or that a guarantee does not hold.
	LevelFail Level = "fail"
)

// Finding is the result of one check.
type Finding struct {
	Check  string // short and stable, for instance "persistence"
	Level  Level  // how much it matters
	Detail string // what was found
	Advice string // what to do about it; empty if nothing

	// Page is where the check is explained: a URL, or a path in the repository of the engine; with the anchor of a
	// heading. Empty if nowhere.
	Page string
}
