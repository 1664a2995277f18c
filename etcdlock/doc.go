// Package etcdlock is the engine for etcd. A lock is a queue of keys under one prefix, in the order of their create
// revisions; each belongs to the lease of its client, and the first one has the lock.
//
//	locks, err := interlock.Open(ctx, "etcd://localhost:2379", nil)
//
// [New] takes a client of go.etcd.io/etcd/client/v3 that the program has already.
//
// # URL
//
//	etcd://host1,host2,host3                          some or all members; their port is 2379
//	etcd://user:password@host?tls=true&ca=/path/ca.crt
//
// Of the special characters in a user or password / ? # and % must be written as %2F %3F %23 and %25. IPv6 addresses
// are written in brackets.
//
// Query keys: prefix and request-timeout (as in [Options]), tls (true), ca (a file with the authority's certificate in
// PEM; without it the system's authorities count), cert and key (files with the client's own certificate). An unknown
// key is an error. The session's timeout is the client's Lease.
//
// # Guarantees
//
// Requests are granted first come, first served, across processes; the cluster decides about the order by consensus. No
// clock is stored or compared. The token is the create revision of the key times 64, plus the number of passes inside
// the process, so it always grows, unless the cluster is restored from a backup or made anew.
//
// A client has one session, an etcd lease, for all that it holds and waits for. A sign of life is sent each third of
// its timeout, in a request of its own, together with a read that needs a majority of the members. The read shows
// whether the leader has answered the sign of life, or one that leads no more. Holds are trusted until the timeout has
// passed since the last sign of life that the leader answered was SENT. The servers count from its arrival, and after
// an election from the beginning, so they never free a lock before that. The session has nothing to do with the
// contexts of the requests; it lives until Close, until the servers have been out of reach for its timeout, or until an
// operator revokes the lease. Then the owners of all holds are told at once, waits end (interlock begins them again, at
// the end of the queue), and a new session is made.
//
// After a wake-up a waiter reads whether its own key is still there and nobody is before it; a wake-up alone grants
// nothing. A release deletes the key only if it is the one that was granted, by its revision. A request whose answer
// got lost is sent again without taking anything twice; one that is given up leaves a tomb, so that a copy that arrives
// late takes nothing.
//
// One thing no lock can prevent: a process that stands still for longer than its session, or whose write is under way
// for so long, acts beside the next owner. Resources have to look at tokens; see package
// [github.com/interlock-go/interlock/fence].
//
// With LockOptions.Retain a client keeps its key after an Unlock, for nobody, until another asks. Whoever finds such a
// key right before its own, and each try that is refused by one, writes a call to the keys of the holder's session,
// which that session watches. A call is a key and stays until the holder's release deletes it, so a lost watch or a
// restarted server delays it and no more: a session reads its calls when it watches again, and with each sign of life.
//
// # Costs
//
//   - Acquire and Release: one transaction each, so one round trip and one write to the disks of most members.
//   - A wait: two reads more, one when the watch has begun and one after the wake-up. A release wakes one waiter,
//     whatever the number of waiters. With readers, it wakes all its waiters; with permits, all that get in.
//   - Requeue, which ends a process's turn: one transaction.
//   - A retained lock that the same process takes again: nothing, but each 64th time the two transactions. One that is
//     retained for a second costs a transaction for up to 32 of them, which shows that nobody holds it, another when
//     somebody does again, and a read for 32 of them at each third of the session's timeout.
//   - A recall: one transaction of the process that asks, beside its acquisition, and the release.
//   - A session: a sign of life each third of its timeout, with a read, and at most every five seconds a list of its
//     keys. Its number of locks makes no difference but for that list: some 100 bytes each.
//   - Connections: one to each endpoint, with two streams.
//   - The import: 3 to 4 ms at the start of a program, in which the libraries register etcd's messages. None of it is
//     this package's.
//   - A queue is read from the server's index with each acquisition, in time proportional to its length and to the
//     number of sessions that have used the lock since the last compaction; and with the wake-up of a waiter of a mutex
//     only if the request before it has left without having had the lock, or has given back another contended lock
//     since. The release of a mutex that had waited writes one small key more for that, in the same transaction. Let
//     etcd compact by itself, for instance with --auto-compaction-retention=1h: otherwise its history, to which every
//     lock and unlock adds, fills its disk.
//
// # After a fault
//
//   - A process dies while it retains locks: others wait for them as for those that it held, until its session ends. A
//     shorter Lease shortens that.
//   - A holder dies: its lease ends at most one timeout after its last sign of life; etcd looks every half second. When
//     a client is closed, or its process ends in an orderly way, that is at once.
//   - A leader stands still (a slow disk, a paused machine) and comes back after another was elected: before etcd
//     3.5.13 and 3.4.31 it revokes the leases that have ended by what it knows, although they were renewed with its
//     successor (etcd #15247). Then the next owner gets in at once, and the holder learns of it with its next sign of
//     life, at most a third of the timeout later. Later versions do so more rarely. Doctor warns of it.
//   - A leader dies: nothing is granted or released for the time of the election, one to two seconds by default, and
//     leases begin anew. Holds and waits go on.
//   - A member hangs without closing its connections: grpc takes the endpoints in turn and notices after some 13
//     seconds, so until then every so many requests take an eighth of RequestTimeout more, and a wake-up may come 4
//     seconds late.
//   - The whole cluster is away for longer than the timeout: all holds are lost, and their owners are told before
//     another can get the lock.
//   - The servers have no room left (their quota): locks are given back and passed on, and nothing new is asked for.
//     Older patch versions refuse transactions that only delete as well (etcd #13429); see the next.
//   - The servers refuse to end a hold or a wait: a right was taken away, for instance. The session takes no new locks,
//     and ends with the last of its other holds, and after one timeout at the latest; their owners are told. What it
//     left is free then. A refusal that passes before costs nothing. When nothing may be read any more (a password was
//     changed), nothing shows that the session lasts, so it ends after its timeout in any case.
//   - The servers forget a client's token (all were restarted, or it was idle for --auth-token-ttl): the next request
//     logs in again, which takes some 0.1 s. Holds and waits go on. A client that is given to [New] needs
//     [KeepLoggedIn] for that.
//   - An operator revokes the lease: the owners are told within milliseconds. An operator deletes a key: its owner is
//     told with a sign of life.
//
// # What it cannot do
//
//   - Owners with names are not supported: a key belongs to one session, so a hold cannot be shared with another
//     process.
//   - Sessions last whole seconds, and not less than one and a half times the servers' election timeout, 2 s by
//     default.
//   - Listings know no instants: etcd keeps none. After local passes they show the owner that came first. A retained
//     lock is shown as such after a second.
//   - Versions before Retain do not call. They wait for a retained lock for up to a third of the session's timeout, and
//     their tries are refused. So use Retain when all processes have this version.
//   - MinHold ends with the process: the client keeps the hold in the background, and a key ends with its session.
//   - LockDelay is not supported: a key is deleted with its session, and nothing stays that could keep others out.
//   - Requests for one semaphore with different limits exclude each other with driver.ErrConflict: while the semaphore
//     is held or waited for, its limit is that of the first. Beside processes of earlier versions the wrong one may be
//     refused in the moment in which the last holder leaves.
//
// # Servers
//
// Tested with etcd 3.4 and 3.6. Other later versions answer to the same requests. With users, a role needs to read and
// write the keys that begin with the prefix, and nothing else:
//
//	etcdctl role grant-permission ROLE --prefix=true readwrite interlock/
//
// (Leases belong to nobody in etcd: whoever may write may also revoke them.) What is stored is described in wire.md,
// beside this file, for other languages and for versions of interlock that share a cluster.
package etcdlock
