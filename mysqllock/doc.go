// Package mysqllock is the engine for MariaDB and MySQL: locks of GET_LOCK, each on the session that has taken it, and
// tokens in a table. A wait stands in the server's own queue; a client that is gone loses its locks with its session.
//
//	locks, err := interlock.Open(ctx, "mysql://user:password@localhost:3306/app", nil)
//
// [New] takes a configuration of the client library github.com/go-sql-driver/mysql.
//
// # URL
//
//	mysql://user:password@host:3306/database     one server; the path names the database in which the tokens are kept
//	mysql://user@%2Frun%2Fmysqld%2Fmysqld.sock/database    a local socket, whose path is written as a host
//
// Of the special characters in a user or password / ? # and % must be written as %2F %3F %23 and %25. IPv6 addresses
// are written in brackets.
//
// Query keys: table, shared, waits, slice, check (warn, refuse or none), as in [Options]; tls (true), ca (a file with
// the authority's certificate in PEM; without it the system's authorities count), cert and key (files with the client's
// own certificate). An unknown key is an error. The client's Lease is [Options.Timeout], in whole seconds.
//
// # Guarantees
//
// Requests are granted first come, first served, across processes, as long as each of them waits in the server: see
// [Options.Waits] and [Options.Slice] for when a wait loses its place. A lock has one holder at a time as long as the
// server keeps the holder's session, and the holder stops when it is told that its hold is lost. What ends a session:
//
//   - Its client is gone: the server hears the end of the connection, and frees the locks at once. A client that
//     vanishes without a word (its machine is lost, the network is cut) has until wait_timeout, which each session sets
//     to the timeout: without a sign of life for that long, the server ends it. The holder's own trust ends a little
//     earlier: it counts from when the last answered sign of life was sent. Signs of life are sent each third of the
//     timeout, and find out whether the session itself answers. Other answers, and errors, count for nothing: a proxy
//     may have given them.
//   - The server is restarted, fails over to another one, or an operator or the network ends the connection. Then
//     another client may get the lock at once, and the holder is told as soon as its machine hears of the end of the
//     connection, usually within milliseconds. For that moment there are two holders. Resources that check tokens are
//     not harmed; see package [github.com/interlock-go/interlock/fence].
//   - The server becomes read-only, as in a planned change of the primary: its holders are told by the next sign of
//     life. A primary that was replaced and was not made read-only, stopped or cut off goes on answering its clients,
//     and they go on trusting their holds: see to that, or use a fence.
//
// A server that hangs grants nothing. The holder stops trusting its hold when the timeout is over.
//
// The token is the server's clock in microseconds, or one more than the largest before. It is written by the session
// that has the lock and committed before a grant counts. On one server that keeps its data tokens always grow. After a
// failover to a replica that had not got the last tokens they go on growing, unless its clock is behind by more than
// the time since the last grant.
//
// A connection on which the outcome of a release is unknown is destroyed, and over another one the driver has the
// server end its session; until that is known, the release says that the outcome is unknown. The same is done with
// every session that held or waited for something when its connection broke: none keeps a lock for nobody until its
// timeout, if the server can be reached.
//
// # Costs
//
//   - Acquire of a lock that is free: one round trip, in which the lock is taken and the token written; with the disk's
//     time for one commit. Release: one round trip, without a write.
//   - A refused try: two, of which the second says who has the lock.
//   - A wait: the refused try (spared if the lock was held when it was last waited for), the statement that waits, and
//     the statement that writes the token. After 10 ms of waiting, one more statement asks who is in the way. A release
//     wakes one waiter.
//   - A cancelled wait: KILL QUERY over another connection, and a statement that makes sure.
//   - Connections: up to [Options.Shared] that hold the locks that were free when they were asked for, thousands of
//     them if need be; and one for each lock that this client waits for or holds because it has waited for it, up to
//     [Options.Waits]. Opening one costs the login and two round trips. Idle ones of the second sort are closed after a
//     minute. All holds of one connection end with it, so fewer shared connections mean that more is lost at once.
//   - Signs of life: a statement each third of the timeout for each connection, but for one that waits. A client that
//     holds something asks once a second what operators have broken.
//   - A row of some 150 bytes for each lock. After some 256 grants, and each ten minutes, a client looks at a thousand
//     rows, and removes those that nobody has used for a day. So at most a quarter of the table is old, unless a client
//     grants more than 25 a second.
//
// # What it cannot do
//
//   - Locks over several servers. GET_LOCK is a lock of one server and is not replicated: a failover frees all of them,
//     and in a cluster with several primaries (Galera, group replication) two clients would both have one. Such servers
//     are refused at the start.
//   - Locks for owners that are named: a lock belongs to a session of one process. Kinds other
//     than the mutex and the election.
//   - A search for deadlocks: each wait has a session of its own that holds nothing, so the server sees none.
//   - Proxies that share sessions between clients (statement or transaction pooling). One is found out by the next sign
//     of life, because the session's own mark is missing. Its holds are lost then. A connection that a load balancer
//     closes because nothing has passed for a while ends a wait's place; set [Options.Slice] below its limit.
//   - Break is a row that the holder finds within about a second. If it is dead, Break waits for the end of its
//     session.
//   - The server does not notice that a client that waits is gone. If the client's machine has said goodbye (its
//     process was killed) its turn passes at once; if it is lost without a word, its turn costs the others a timeout.
//   - Listing reads the table in steps of a thousand rows, and the server's list of processes: a wait that lasts longer
//     than its slice, or that asks again and again, is not always there.
//
// # Servers
//
// Tested with MariaDB 10.11. MariaDB 10.3 and later have all that is used. For MySQL 5.7.8, 8.0 and later the
// differences are provided for as its documentation has them, but not tested: an interrupted GET_LOCK is error 1317
// instead of NULL, the errors of ended sessions have other numbers, the list of processes counts in seconds, so waiters
// that came within one are listed in the order of their connections, and max_execution_time takes the place of
// max_statement_time.
//
// A server that keeps as many prepared statements as it may for all clients (max_prepared_stmt_count) is sent texts
// instead, and asked each time whether it prepares again, which is a round trip more.
//
// What the server should be:
//
//   - innodb_flush_log_at_trx_commit=1, the default, so that a crash does not forget tokens.
//   - Room for connections; see Costs, and Diagnose (interlock doctor), which counts them.
//   - Not logging by statements (binlog_format=STATEMENT), which is refused: replicas would take the locks too.
//
// Rights: who opens the first client makes the tables, and needs CREATE in the database. All others need the following.
// With PROCESS, clients of other users are listed too. Nobody needs a right to kill connections: they are the user's
// own.
//
//	GRANT SELECT, INSERT, UPDATE, DELETE ON app.interlock TO user
//	GRANT SELECT, INSERT, UPDATE, DELETE ON app.interlock_breaks TO user
//
// What is stored is described in wire.md, beside this file, for other languages.
package mysqllock
