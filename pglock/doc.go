// Package pglock is the engine for PostgreSQL 14 and later. A lock is an advisory lock of one session, waiters stand in
// the server's own queue, and a row of a table keeps the token.
//
//	locks, err := interlock.Open(ctx, "postgres://user:password@localhost/app", nil)
//
// [New] takes a configuration of the client library pgconn instead of a URL. If the work that a lock guards is in the
// same database, look at pg_advisory_xact_lock and SELECT ... FOR UPDATE first: effect and lock in one transaction need
// neither a lease nor a token.
//
// # URL
//
//	postgres://user:password@host:5432/database
//	postgres://user:password@h1,h2/database             the one that can be written to is used
//	postgres://user@%2Frun%2Fpostgresql/database        the folder of a socket
//
// What is left out comes from where PostgreSQL's programs look: the environment (PGHOST, PGUSER, PGPASSWORD, PGSSLMODE,
// ...) and ~/.pgpass. Of the special characters in a user or password / ? # and % must be written as %2F %3F %23 and
// %25.
//
// Query keys: table, shared, waits, slice (as in [Options]), check (warn, refuse or none, see [CheckPolicy]), sslmode,
// sslrootcert, sslcert and sslkey (as everywhere with PostgreSQL). An unknown key is an error. The client's Lease is
// the session's timeout, in [Options] the Timeout.
//
// # Guarantees
//
// One server never has two holders of a lock at once. Waiters are served first come, first served, across processes, as
// long as a wait lasts no longer than [Options.Slice] and has a connection (see Costs). After a slice it stands at the
// end again. A try never overtakes a waiter, and readers do not overtake a writer that waits.
//
// A hold lasts as long as its session. The client gives a sign of life each third of the timeout, and each 8 seconds if
// that is shorter, and trusts its holds for a timeout from when it sent the last one that was answered. The server ends
// a session that gives none (idle_session_timeout), so the lock of a client that has vanished, or stands still, is free
// after the timeout; when the client's process dies it is free at once. When a session ends, all holds on it end, and
// their holders are told: at once if the server says so or the connection breaks, otherwise when the trust ends. A
// connection that breaks is never used again: over another one the driver has the server end the session, and until
// that is done it reports the outcome as unknown.
//
// The token is the server's clock in microseconds, or one more than the last if the clock is not beyond that. It is
// written and committed by the same statement that takes the lock, so it is on disk before the grant counts. It goes on
// growing after a crash, and after a failover unless the new server's clock is behind by more than the time since the
// last grant that was not replicated.
//
// Two owners may hold a lock at once, the newer one with the larger token (let resources check it, see package
// [github.com/interlock-go/interlock/fence]):
//
//   - After a restart, a failover, pg_terminate_backend or a reset of the network: the old holder does not know of it
//     until it is told, which takes a message if the network works, and the timeout if it does not. Advisory locks are
//     not replicated, so a failover frees all of them.
//   - After a failover, if the old primary still runs and its clients reach it: it goes on answering them, and they go
//     on trusting their holds for as long as it runs, also where a grant waits for a synchronous standby. Nothing that
//     a server says of itself shows that it was replaced. Stop it or cut it off before a standby is promoted, as for
//     any other data.
//   - After the server's wall clock was set ahead: it may end a session early. The old holder hears of it in the same
//     way.
//   - If a program of somebody else unlocks or takes our numbers (see Names).
//
// # What it cannot do
//
// Owners named by the caller do not re-enter from other processes: an advisory lock belongs to one session. The kinds
// of locks are the mutex and the read/write lock. The latter has no upgradeable read, no upgrade and no downgrade: the
// server's queue has no place at the front for a reader that wants to write, so two of them would wait for each other.
//
// A client reads one lock at most Shared + Waits (20) times at once: each of its readers needs a session that has no
// part in the lock, because the server lets a session that already has it in, past the waiters, and even to write. A
// further reader waits, although the lock is free to be read, and a try says [driver.ErrUnavailable]. Readers of
// different locks share sessions.
//
// # Names
//
// The server knows an advisory lock by a number of 64 bits, which is a hash of table, kind and name. The table is the
// one that the server has found, with its schema: a client that names it otherwise has the same locks, and two tables
// in two schemas, although both clients call them interlock, have different ones, of which the start-up check warns.
// Two names with the same number are found out, because the row of the number carries the name: the later one moves on
// to a second hash, and the row that has led it on is kept for ever. So a collision costs round trips and never an
// isolation. The numbers of other programs in the same database are not known; if one of them takes the same number,
// each waits for the other.
//
// # Costs
//
//   - Acquire of a free lock: one round trip, one statement, one write to the log of the server. Release: one round
//     trip. A TryLock that is refused: one.
//   - Wait: two round trips, for a try and for the holder in the way, then one packet to the connection that waits. The
//     hand-off is one message from the server and needs no further round trip, unless the wait has lasted for more than
//     a quarter of the timeout. A lock that was contended a moment ago is waited for without a try.
//   - Connections: up to Shared (4) hold all locks that were free when they were asked for, thousands of them. Each
//     lock that is waited for, or was got by waiting, has one of up to Waits (16) others, until its release. Beyond
//     that a wait asks again and again, about each 20 ms and in a crowd less often, and the order is lost. A wait does
//     the same, up to a second apart, while the server takes more than 5 s to open its connection. A client that never
//     meets another one has one connection.
//   - Signs of life: a statement for each connection in each third of the timeout, and in each 8 seconds if that is
//     shorter, but for one that waits.
//   - Locks of the server's table: one for each hold and wait. It has room for max_locks_per_transaction x
//     max_connections.
//   - A reader costs what a writer does, and one row more, which is not written to the log of the server.
//   - Rows: one of some 200 bytes for each lock. After some 256 grants, and each ten minutes, a client looks at a
//     thousand rows, and removes those that nobody has used for a day. So at most a quarter of the table is old, unless
//     a client grants more than 25 a second.
//   - A statement that waits keeps VACUUM from removing what has been deleted since in the whole database, for Slice at
//     most. CREATE INDEX CONCURRENTLY waits for it as long. Where that matters set slice=1s.
//   - With a thousand clients waiting for one lock, the server's search for deadlocks, one for each wait of more than a
//     second, takes seconds and stops all locks meanwhile. It can find nothing, because no session of ours both waits
//     and holds, so the driver turns it off for its waits if the role may: GRANT SET ON PARAMETER deadlock_timeout TO
//     the role.
//
// # Servers
//
// PostgreSQL 14 or later, which ends idle sessions. Tested with 15. The role needs SELECT, INSERT, UPDATE and DELETE on
// the tables interlock, interlock_waits, interlock_breaks and interlock_readers (or as Table says), and for the first
// start the right to create them; beside that nothing but the right to connect. Tables and statements are described in
// wire.md.
//
// A pooler that shares sessions among clients (pool_mode transaction or statement of PgBouncer) is refused, because two
// clients would hold one lock. One that keeps a session for each client works, and is warned of: it needs room for all
// connections.
//
// With a synchronous standby a grant is on it before it counts. While the standby is missing nothing is granted. A
// client process that ends then, in the midst of a grant, leaves its session with the lock until the standby is back or
// an operator ends the session.
//
// A failover needs nothing but a URL with all servers: the driver connects to the one that can be written to. Only one
// of them may be: each grants locks of its own. A client refuses a session of a second server while the first answers.
// Two clients that each see one of two such servers notice nothing.
package pglock
