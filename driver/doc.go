// Package driver is the seam between interlock's portable behaviour and the engines that keep the locks.
//
// An engine implements [Driver] and whichever optional interfaces it can honour ([Renewer], [Requeuer],
// [MultiAcquirer], [Converter], [Adopter], [Resizer], [Inspector], [Looker], [Watcher], [Breaker], [Latcher], [Conder],
// [Diagnoser]).
//
// Everything that is the same on every engine is written once, above this seam. An engine must not write any of it
// again:
//
//   - owners and re-entry inside a process, and the queue of waiting goroutines
//   - the renewal scheduler, the trust window and loss signals
//   - the undoing of acquisitions whose outcome is unknown
//   - options and error texts
//
// # The model that all engines share
//
// A lock is a weighted, leased FIFO queue. It has a limit; a request has a mode and a weight. A mutex is an exclusive
// request on a limit of one. A reader is a shared request, a writer an exclusive one. A semaphore acquisition is a
// shared request of some weight on a limit of N. Each hold ends by release, by its lease, or with its session.
//
// # Three ways in which a hold ends when its client vanishes
//
// [Leases] engines (Redis, memory) end a hold when its lease was not renewed. [Sessions] engines (ZooKeeper, etcd, SQL)
// end it with the client's session. [Process] engines (files) end it with the process. The portable layer learns from
// [Traits] which of them applies, and from [Grant] how long a hold may be trusted.
//
// # Time
//
// A driver never stores a client's clock in the engine, nor compares one there. It tells the portable layer, on this
// process's monotonic clock, from which instant a lease may be counted ([Grant].Sent). That instant is not later than
// the one at which the engine granted it.
//
// # Errors
//
// Drivers return raw errors; the portable layer adds lock, operation and engine once. What an error says about the
// outcome is part of the contract, see [Driver].
//
// Package [github.com/interlock-go/interlock/drivertest] checks an implementation against all this.
package driver
