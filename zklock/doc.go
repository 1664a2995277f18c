// Package zklock is the engine for Apache ZooKeeper: one server, or an ensemble. A request is an ephemeral sequential
// node below the lock's. A request with no other one in its way has the lock, and every other one watches the single
// node that is in its way.
//
//	locks, err := interlock.Open(ctx, "zk://zk1,zk2,zk3/app", nil)
//
// [New] opens a driver without a URL.
//
// # URL
//
//	zk://user:password@host1:2181,host2:2181,host3:2181/chroot
//
// The path is the node below which everything is kept ([Options.Root]); without one it is /interlock. It is made if it
// is missing. Name all servers of the ensemble: a client uses one of them, chosen at random, and goes on to the next
// when it is silent. Servers that are not of one ensemble would each grant the same lock, so Open refuses them, as far
// as ZooKeeper tells: if the servers name fewer members than the URL, a client looks whether all that answer know its
// session. The client's Lease becomes the session's timeout, within what the servers allow.
//
// User and password are shown to the servers (scheme digest), and nodes that are made then belong to this user alone.
// Of the special characters in them / ? # and % must be written as %2F %3F %23 and %25, and the user has no colon.
//
// Query keys: acl (open: nodes belong to everybody although there is a user; creator: to the user alone, which is the
// default if there is one), tls (true; the port is 2281 then unless it is named), ca (a file with the authority's
// certificate in PEM; without it the system's authorities count), cert and key (files with the client's own
// certificate). An unknown key is an error.
//
// # Guarantees
//
// An ensemble agrees on every node by a majority, and a hold is trusted only for as long as a majority has confirmed
// that its session lives. So two owners do not have a lock at once: not after the death of a leader, not after a
// restart, not with a minority cut off (which grants nothing, although its leader may go on answering for a while), and
// not when clocks are set. This rests on three things:
//
//   - The servers forget nothing. A copy of old data breaks the promise: a server that is set back to a backup, or a
//     majority that has lost its disks.
//   - The clocks of the client and of the leader run at rates that differ by less than one per cent.
//   - The leader asks each follower at least every 1.5 s, and each quarter of a session's timeout, which clients it has
//     heard of. ZooKeeper asks each half tick, and a tick is 2 s unless tickTime says otherwise; do not set it above
//     3 s, nor minSessionTimeout below two ticks.
//
// Far from the servers, where a round trip takes a ninth of the timeout or more, it rests on a fourth: no network keeps
// several requests back, lets them arrive together, and then spaces their answers out as the requests were sent.
//
// Requests are granted first come, first served, across processes. A release wakes one waiter, the next in line,
// however many there are. (Readers that wait for one writer wake together, because all of them get in.) A message about
// a node, of whatever kind and whoever caused it, only makes a waiter read the queue, and nothing but the queue grants.
//
// A hold lasts until its release or until the session ends, which happens when the servers have not heard of the client
// for the session's timeout. A client that vanishes keeps its locks for so long, and so does one that ends without
// Close. Three things are told apart:
//
//   - A broken connection. The session is suspended; the client connects to another server with the same session. Holds
//     and places in queues stay. Operations wait for the next connection for as long as their context allows, those
//     that have no place in a queue yet for five seconds at most.
//   - A session that could not be confirmed in time. A hold is trusted for the timeout, less a drift allowance, from
//     the last sign of life of which it is proved that the leader of a majority knows. Then it counts as lost
//     (LostUnconfirmed), before the servers can end it. Each third of the timeout the client gives a sign of life, and
//     each ninth while one is not answered (of a timeout below 9.6 s each quarter, and each twelfth). The proof is a
//     transaction that changes nothing, a quarter of the timeout later and a little (at most 1.6 s): a follower tells
//     the leader only now and then which of its clients live. The pause counts from the answer to the sign. Far from
//     the servers it counts from the sending, if the answers come as far apart as the requests were sent. Nothing that
//     one server says by itself confirms a session: a leader that has been cut off, and a follower that has lost its
//     leader, confirm nothing.
//   - A session that the servers have ended (LostSession). The client learns of it when it reaches them again. The
//     driver makes another session at once and can be used as before. Waits go on in it, at the end of the queue. A
//     session is ended in the same way when a server makes its timeout shorter at a reconnection. If a server that
//     serves was asked to take the session back and none answers for 4 s, it may have done so, and the session is ended
//     too. (A limit below 4 s that is set meanwhile is noticed only if the answer arrives.)
//
// A release or an undo that the servers refuse, because a right was taken from the client, leaves a node in the queue.
// From then on the session grants nothing. It ends with the last hold that its owners still have, after one timeout at
// the latest; they are told (LostSession). The end of the session removes the node. If the servers hear the release in
// time, the session goes on.
//
// An operator who deletes the node of a hold, or writes to it, ends the hold (LostBroken): a hold that is older than a
// tenth of a second watches its own node. Break deletes it. A write to the node of a waiter means nothing.
//
// With LockOptions.Retain a client keeps its node after an Unlock, for nobody, until another asks. Each request, a try
// too, writes to the lock's node in the same transaction. The holder watches that node and gives the lock back at once;
// after a broken connection it looks whether anybody has asked. The price: if the client dies meanwhile, the lock stays
// closed until its session ends, because the session cannot be shortened for one lock. Choose a short Lease, which
// becomes the session's timeout, if that is too long.
//
// The token is the number of the transaction that made the node, times 64; the 63 that follow are for passes inside the
// process. Transactions are counted by the ensemble over all elections, so tokens grow for ever, but not over a backup
// that is put back.
//
// A lost reply does no harm. A node's name begins with a word that no other request ever has, so a request whose reply
// was lost finds its node again, and takes it only if it belongs to its own session. A request that a broken connection
// delivers late is refused. Each session has a node of its own, whose version it raises before it uses a new
// connection, and a request for a lock is carried out only with the version that it knows.
//
// # Costs
//
//   - Acquire, Release: one round trip each, one transaction. The first of a lock that was free for a minute costs two
//     more, which make its node.
//   - A wait: four round trips, and one more to learn who has the lock if others stand between. While it lasts,
//     nothing. One of the four follows the wake-up and reads the names in the queue, some 40 bytes for each request.
//     Those of one client that wake together share it.
//   - Requeue, which ends a process's turn: one round trip.
//   - A hold that is older than a tenth of a second: two round trips in the background, for the watches on its own node
//     and, of a mutex or an election, on the lock's. The first request of another that comes then costs the holder a
//     message.
//   - A hold with Retain that found the lock free: the second of these at once. Each further acquisition by the same
//     process sends nothing. A lock that is retained for a second costs one transaction, which shows it as retained,
//     and another when it has an owner again; nothing more while nobody asks. Each request of others costs the holder a
//     message, and at most ten reads a second.
//   - A refused try: three round trips.
//   - A new session, if there are several servers in the list: one round trip more.
//   - After a reconnection: one round trip, then two for each wait, and one or two for each hold. Before it the server
//     is asked over a connection of its own whether it serves (srvr).
//   - A session: one transaction and one read each third of the timeout (of one below 9.6 s, each quarter), however
//     many locks it holds; if a round trip takes more than a ninth of it, up to three times as many. 1,000 clients with
//     a timeout of 30 s make 100 transactions a second. That took 14 % of one processor for three servers together,
//     which waited for their disks, on a busy machine that carried out 4,000 a second. Alone, such a transaction took
//     1.6 ms there, and a sync, which proves nothing, 0.3 ms.
//   - Look, Locks and Break: one transaction more, so that none of them shows what a cut-off server remembers.
//   - Connections: one. Requests of all locks go over it together.
//   - The client library takes some 2 MB of memory for its buffers, and one ping each third of the timeout beside ours.
//   - Nodes: a few that last for the root, and for each process one as long as it runs. That of a free lock is a
//     container, which the servers remove a minute after its last use (znode.container.checkIntervalMs).
//
// # What it cannot do
//
//   - Owners named with WithOwner: a node belongs to one session, so a hold cannot be shared with another process.
//   - Semaphores, latches and conditions.
//   - Leases of its own for a lock: all holds of a client last as long as its session. Sessions are at least two ticks
//     of the servers (4 s unless they are configured otherwise) and at most twenty (40 s).
//   - MinHold beyond the life of the process: the client keeps the hold in the background, and it ends with the
//     session.
//   - LockDelay: a node is removed with its session, and nothing stays that could keep others out.
//   - Show a hold that was passed on inside a process under its new owner: it is shown as it began. One that nobody has
//     is shown as retained, after a second.
//   - List many locks in one request: it takes one for each lock and one for each of its nodes, some of which are under
//     way at a time.
//
// # Servers
//
// Tested with ZooKeeper 3.8, alone and in an ensemble of three. 3.5 and later have all that is used; on 3.4 the driver
// removes the nodes of free locks itself, and those of a client that dies stay (this is tested by making believe). TLS
// is tested by a proxy that speaks it.
//
// Rights of the user: all of create, read, write and delete below the root, and create on the node above it unless the
// root is there. Diagnose (interlock doctor) also uses the command srvr and the ACL of the root.
//
// A server takes 60 connections from one address unless maxClientCnxns says otherwise, and each process needs one.
//
// A server that stands alone frees nothing and grants nothing while it is away, and knows its sessions again after a
// restart. How nodes are named and what is in them is described in wire.md, beside this file.
package zklock
