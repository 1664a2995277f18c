// Package memlock is the engine without a server: locks in the memory of this process. It is for tests and for programs
// that run as one process, and it is the reference model with which other engines are compared. It works under
// testing/synctest, where leases run in virtual time.
//
// # URL
//
// mem://NAME is one store per name and process, shared by all clients that open it; mem:// is the one with the empty
// name. There are no query keys, and a user, a path or a second host is an error. A store is forgotten with all its
// holds when its last client is closed. [New] makes a store that no URL reaches; [Driver.Peer] gives another client
// access to it.
//
// # Guarantees
//
// Requests are granted first come, first served. A request that waits is overtaken only by re-entry and by an upgrade
// of an upgradeable read, which both would otherwise wait for themselves. A hold lasts until its release or until its
// lease ends; when it ends, the next waiter has the lock at that instant. Within a process the clock is monotonic, so a
// step of the wall clock neither shortens nor lengthens a lease.
//
// Tokens grow with every grant of the same lock, also across a time in which it was free. They grow, too, when the wall
// clock stands still or goes back. They are the clock in microseconds, or one more than the largest before.
//
// A request ID is used once. A copy of a granted request gets the same grant, a copy of one that is over takes nothing.
// What the store remembers for that, some 300 bytes for each request, is forgotten after the request's lease. It is
// forgotten earlier once 16,384 more requests have been released, or undone. So a store remembers at most twice as many
// of those, whatever the leases are. In memory a request is over when its call has returned, so only a driver that
// delays or repeats requests can bring a copy.
//
// # What it cannot do
//
// It excludes nobody outside this process, and nothing survives the process. Locks are of the kinds mutex, read/write,
// semaphore and election, and there are latches and conditions. Deadlocks between owners of several clients are found
// only if these are named. Only the first 16 waiters of a lock are told of a new holder. One further back knows the
// holder at the time when its wait began.
//
// # Servers
//
// None.
package memlock
