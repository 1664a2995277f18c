// Package foreign has programs that lock with interlock and programs that lock with another library exclude each
// other, on the same Redis: so a fleet moves from one to the other by an ordinary rolling deploy, and back.
//
//	ours, err := redislock.New(client, nil)
//	// ...
//	locks, err := interlock.New(foreign.New(ours, foreign.Redsync()), nil)
//
// When no program of the other library is left, leave foreign.New out, again by a rolling deploy: our own lock was
// taken all the time. docs/migration.md has the steps and, for each library, what becomes of its calls.
//
// # Guarantees
//
// A mutex is held when our lock and the other library's key are. Both are renewed together, and the hold is lost when
// either is; what is left of it is given back at once. The key never ends before the lease does. Among our own programs
// everything stays as it was: first come, first served, one message for each hand-off, fencing tokens. A holder of the
// other library counts as held: the first of our queue looks for its key every 10 to 250 ms, because that library tells
// nobody.
//
// # What it cannot do
//
// A holder of the other library is no safer than it was. It has no fencing token, does not wait in our queue, and may
// be inside after its time to live has passed without knowing. When both want a lock all the time, nobody promises
// whose turn it is. There are no read/write locks, semaphores, elections or named owners: open a second client for
// those. With several servers (redsync's Redlock) there is nothing to share: see docs/migration.md.
//
// The key is not waited for on replicas, as the other library does not either: after a failover that loses it both
// may be inside until the next renewal.
//
// # Cost
//
// One round trip more for each Lock, Unlock and batch of renewals.
package foreign
