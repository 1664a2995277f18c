// Package redislock is the engine for Redis and Valkey: a server that stands alone, a primary that Sentinels watch
// over, or a Cluster. A lock is one key, and each operation is one script, so it is atomic. A waiter stands in a queue
// in the server and is told of the grant by a message.
//
//	locks, err := interlock.Open(ctx, "redis://localhost:6379", nil)
//
// [New] takes a rueidis client that the program has already, and [Start] also a context. [Connect] takes the options of
// a client, and is as fast as a URL. Package goredislock takes go-redis clients. [NewConn] takes any other client
// through a small interface, [Conn], which package [github.com/interlock-go/interlock/redislock/conn] explains.
//
// # URL
//
//	redis://user:password@host:6379/0                    one server; the path is the number of a database
//	rediss://host                                        the same with TLS
//	redis+sentinel://user:password@s1,s2,s3/NAME?db=0    the primary that the Sentinels call NAME; their port is 26379
//	redis+cluster://user:password@h1,h2,h3               a Cluster, of which some nodes are enough
//
// A password without a user is that of the user "default": redis://:password@host. Of the special characters in a user
// or password / ? # and % must be written as %2F %3F %23 and %25. IPv6 addresses are written in brackets.
//
// Query keys: prefix, replicas, replica-timeout (as in [Options]), check (warn, refuse or none, see [CheckPolicy]), db,
// tls (true, for redis+sentinel and redis+cluster), ca (a file with the authority's certificate in PEM; without it the
// system's authorities count), cert and key (files with the client's own certificate), and sentinel-user and
// sentinel-password for the Sentinels: user and password in front of the hosts are shown to the servers only. TLS is
// used for both. An unknown key is an error.
//
// # Guarantees
//
// Requests are granted first come, first served, across processes. Only re-entry and an upgrade of an upgradeable read
// overtake others, because both would otherwise wait for themselves. All instants are the server's: no client's clock
// is ever stored or compared. A hold lasts until its release or until its lease ends; then the next waiter has the
// lock, and a late renewal or release of the old hold changes nothing.
//
// On one server that keeps its memory and whose clock does not jump, two owners never have a lock at once. These break
// that:
//
//   - A failover. Replicas get writes a little later than their primary, so the one that is promoted may not know the
//     latest grants, renewals and releases. A lost grant means that the lock is granted again, beside its holder. A
//     lost renewal means that the lease ends early; a lost release, that the lock is free only when its lease ends.
//     With [Options.Replicas] set to the number of all replicas that are configured, a grant or a renewal counts only
//     when all of them have acknowledged it, and nothing of that is lost unless the promoted one has lost its memory
//     too. The same goes for whatever else is told as done: a release that keeps the lock closed (MinHold), a Break, a
//     signal, a change of a latch or of a limit, the zero of a latch, who leads an election. A plain release does not
//     wait: its client releases again when the connection breaks. The price: while a replica is missing, none of these
//     succeeds; with too few acknowledgements the error matches driver.ErrUnavailable. The server's setting
//     min-replicas-to-write is weaker: it refuses writes only when replicas have been silent for min-replicas-max-lag,
//     so it shortens the time in which grants are lost.
//   - A restart that forgets: without an append-only file all locks are free again, with appendfsync everysec a loss of
//     power forgets up to two seconds. If the primary is back before it is missed, its replicas copy the loss, so
//     Options.Replicas does not help. Clients renew all that they hold when they are connected again, so holders are
//     told then.
//   - Eviction, FLUSHALL, or a program that deletes keys of the prefix.
//   - A jump of the server's clock: Redis ends leases by the wall clock. A jump forward ends them early by as much, a
//     jump back late. A replica that takes over with a clock that is ahead or behind does the same, with
//     Options.Replicas too.
//
// Whatever happens, the token tells a resource which owner is newer: it is the server's clock in microseconds, or one
// more than the largest before, minted in the step that grants. After a failover it goes on growing, unless the clock
// of the new primary is behind that of the old one by more than the time since the last grant. (See package
// [github.com/interlock-go/interlock/fence].)
//
// A grant that comes by push is trusted at once, without a round trip, if it came over the connection over which the
// server has answered this request before. The difference of the server's two instants tells when it was granted, on
// the client's own clock. It is a claim of 2 seconds (or the lease, if that is shorter), and the renewal that follows
// at once extends it to the full lease. If the server's clock has jumped forward between that answer and the grant, the
// claim is trusted for too long, by the jump or by the time that the push was under way, whichever is less. A grant
// whose instant cannot be right, and every push after a reconnection, with RESP2 or with Replicas, is confirmed by a
// round trip before it counts.
//
// A request is known by its ID: sent again, after a lost answer or on purpose, it takes nothing twice, and once
// released or undone it is refused. When a connection ends before the answer came, the driver sends the request once
// more over a new one, so a server that closes idle connections fails no request. Renewals and reads likewise; releases
// are repeated by the portable layer.
//
// # Costs
//
//   - Acquire, Release: one round trip each, one script. Two to four commands run in it if nobody is in the way.
//     Requests that goroutines make at the same time share runs of a script, if the driver was opened by a URL, and not
//     in a Cluster.
//   - A wait: the round trip that queues it, and the push. While it lasts, a heartbeat every second. Where more than 50
//     wait, the pause is 20 ms for each waiter, three minutes at most, and the process says once a second that it is
//     alive. Where more than 200 processes wait, that pause is 5 ms for each process. The first wait in a slot of a
//     Cluster costs two round trips more, to be queued and to subscribe (SSUBSCRIBE).
//   - Renewals travel together: one script for 125 holds, in one pipeline for each server; in a Cluster one script for
//     each hold.
//   - AcquireAll, which a Multi uses: one round trip, one script, for up to 250 mutexes that are free. In a Cluster
//     their names must share a hash tag: {order-7}:stock and {order-7}:invoice.
//   - Requeue, which ends a process's turn: one round trip.
//   - Retention: a retained lock costs its renewals, and no message to be taken again. Each request that finds such a
//     lock taken, and each of its heartbeats, publishes one message to the client that keeps it; in a Cluster every
//     node passes that on, as it does with a break. If the message is lost, a heartbeat or the client's next renewal
//     makes up for it. A client that has locks which it may retain reads all the time, so each answer wakes one
//     goroutine more.
//   - Replicas: each acquisition and renewal, and what else is told as done, waits for the slowest replica, on a
//     connection that nobody else uses meanwhile; and a wait costs one round trip more, because the push is only a
//     hint then.
//   - A lock with a LockDelay is not stored in the short form that others have, and a wait for it costs one round trip
//     more, as with Replicas: a pushed grant that nobody has claimed must not count as a loss, so no owner may act on
//     it before it is confirmed.
//   - Elections: as a lock, and two short commands more in the script of each change. Each observer costs a round trip
//     every five seconds (40 ms for each observer, where more than 125 observe; 40 seconds at most), and a message and
//     a round trip for each new leader.
//   - Latches: one round trip each to set, count down and count. A wait costs two, those of an observer while it lasts,
//     and a message.
//   - Conditions: one round trip to give the lock up and wait, one each second while the wait lasts, one to signal, and
//     the push. A script passes over the requests that were given up between the first and the last waiter.
//   - Connections: one to each server for calls and pushes, beside those that the client has for itself.
//   - Memory: a lock that is free has no key. Each of at most 16,384 slots keeps the largest token of its locks, some
//     100 bytes, for ever.
//
// # In a Cluster
//
// While a slot moves from one node to another, the keys of one lock may be on both: acquisitions and releases of its
// locks then wait until it has moved (the server says TRYAGAIN), a try fails after two seconds, and renewals go on.
// While a node fails over, its slots stand still, and with Redis's default cluster-require-full-coverage all others
// too.
//
// # After a death
//
// When a holder dies, its lease runs out, and the first in the queue asks a millisecond later; the others follow, 2 ms
// apart.
//
// A waiter that died is noticed when it is its turn. Its subscription has ended with its connection, so outside of a
// Cluster the server passes over it at once. Otherwise (a Cluster, or a machine that has vanished without a word) it
// may be granted a lock that it does not claim, for 2 seconds. That happens once, however many have died: a waiter
// gives a sign of life each second, itself or by its process, and a waiter that has been silent for 2 seconds is
// skipped. It keeps its place for 5 seconds, and is in line again with its next sign of life. So a lock whose holder
// has died is in use again when its lease has run out, and at most 2 seconds later if waiters have died in the last 2
// seconds of it. With leases under 2 seconds all of these are in proportion.
//
// # What it cannot do
//
//   - A quorum: a lock is as safe as the one primary that has it.
//   - Deadlocks between owners of several clients are found only if these are named, by listing the locks now and then.
//   - A break reaches its holder by push. A holder whose connection is broken at that moment learns of it by its next
//     renewal.
//   - A wait survives broken connections and failovers. If the server is away for longer than 5 seconds, or the new
//     primary does not know the queue, its place is lost, and it stands at the end.
//   - A wait ends when the server refuses it for good: a right or the password was taken away, the lock's key has
//     another type, or a command is missing. It goes on through what passes: a restart, a failover, a full memory,
//     replicas that are away.
//   - Listing locks goes through all keys of the deployment (SCAN), in steps that do not block the server.
//   - The prefix cannot have braces. A name can, and then they decide about its slot in a Cluster as they do for other
//     keys.
//
// # Servers
//
// Tested with Redis 7.0, alone, with replicas, under Sentinel and as a Cluster. Redis 6.2 and later and Valkey have all
// that is used, so they should work; a Cluster needs 7.0 for its sharded channels. RESP2 works, at the price of a round
// trip for each push.
//
// At its start a driver looks at the server's set-up, as [Options.Check] says; Diagnose (interlock doctor) looks
// closer. What it should be:
//
//   - maxmemory-policy noeviction. Locks are keys with a time to live, so the policies named volatile-* remove them
//     like the others. With noeviction a server that is full refuses new locks, while those that are held can be
//     renewed and released.
//   - appendonly yes, and appendfsync always if a loss of power must not forget locks.
//   - Clocks that are set over the network, on all servers of a failover.
//
// SCRIPT FLUSH and restarts do no harm: a server that does not know a script is sent its text.
//
// Rights: a user of its own needs the first line, with its prefix if that is another one, and the next ones where they
// apply. (The lines are tested, right by right. Without +ping everything works too, but the PING by which the client
// sees whether an idle server is there fills the server's ACL LOG. Without the last line the start-up check says that
// it could not look.)
//
//	ACL SETUSER app on >PASSWORD resetchannels ~interlock:* &interlock:* +eval +evalsha +subscribe +scan +time +get +mget +set +del +hset +hget +hmget +hdel +pttl +pexpire +pexpireat +zadd +zrem +zremrangebyscore +zrange +zscore +zcard +hgetall +publish +ping # locking
//	ACL SETUSER app +wait # with replicas
//	ACL SETUSER app +role # under Sentinel
//	ACL SETUSER app +cluster|slots +cluster|shards +ssubscribe +sunsubscribe +spublish +asking # in a Cluster
//	ACL SETUSER app +info +config|get +cluster|info # for the checks
//
// The client asks Redis and Valkey 8 and later for CLUSTER SHARDS, and older ones for CLUSTER SLOTS.
//
// A database other than 0 also needs +select. A replica must have the same users as its primary: they are not
// replicated. A [Guard] keeps its marks in keys that begin with interlock:fence: whatever the prefix, and its scripts
// need the rights for what they do with the data.
//
// What is stored and sent is described in wire.md, beside this file, for other languages and for versions of interlock
// that share a deployment.
package redislock
