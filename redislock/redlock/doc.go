// Package redlock is the engine for locks that a majority of independent Redis servers keeps, five of them as a rule:
// the algorithm called Redlock, with renewal, wake-up by push, and fencing tokens that grow although no server sees
// every grant. A server that fails, hangs or is cut off takes no lock with it, as long as a majority is left.
//
//	locks, err := interlock.Open(ctx, "redlock://h1,h2,h3,h4,h5", nil)
//
// [New] takes rueidis clients that the program has already, for servers with credentials of their own.
//
// It is worth its price where a failover of one Redis with replicas would grant a lock twice, and a service with
// consensus (etcd, ZooKeeper) is not at hand. For locks that only save work, one Redis does (package redislock). Where
// a second owner does harm, check the tokens, with this engine as with every other.
//
// # URL
//
//	redlock://user:password@h1:6379,h2:6379,h3,h4,h5/0       the servers, all with these credentials and this database
//
// There must be three servers at least; an even number is warned of, because it survives no more failures than one
// less. The servers are primaries that know nothing of each other. User, password, ports and the path are written as in
// a redis:// URL.
//
// Query keys: longest-lease and node-timeout (as in [Options]), former (below, under Changing the servers), prefix,
// check (warn, refuse or none: a server that is refused is not used), db, tls (true), ca, cert and key (as in package
// redislock). An unknown key is an error.
//
// # Guarantees
//
// All nodes are asked at once, and shown the same value, the request's ID. A lock is acquired when a majority has voted
// for it and some of the lease is left. It is trusted from before the first vote was asked for, until the first vote of
// the majority ends, less the allowance for clocks of different rates: the time that the majority took is no part of
// it. A renewal counts when a majority has confirmed it; a release, when a majority has, and it goes on in the
// background until every node has understood, or the lease is over. Without a majority that answers, everything says
// ErrUnavailable, never that the lock is held.
//
// The three questions that explanations of the algorithm ask:
//
//   - Why a majority? Any two majorities have a node in common, and that one votes for one owner. With fewer votes, two
//     owners may have no node in common; with all votes, one dead node stops everything.
//   - Why measure? The lease of the first vote runs while the others are waited for. A majority whose first leases
//     ended before the last vote came is none.
//   - Why release everywhere? A node that did not answer, or whose answer was lost, may have voted. What is left there
//     keeps the next owner out until its lease ends.
//
// A test shows of each rule what happens without it (TestRules_AreKeptAndNecessary). Some descriptions of the algorithm
// give each node a random value of its own. That contradicts it: a release could not name what it ends on a node whose
// answer was lost, and a repeated request would find its own votes in its way.
//
// At most one owner has a lock at once, as long as
//
//   - all clients name the same nodes: see The servers, and Changing the servers;
//   - nodes keep what they have granted, or rest: see below;
//   - their clocks do not jump: Redis ends leases by the wall clock. A jump forward on some nodes of a holder's
//     majority lets a second owner in if those and the other nodes are a majority too. One jump on one node does so
//     only for a holder that has no vote to spare;
//   - the holder stops when it is told that the lock is lost, and is not paused longer than its lease.
//
// Tokens hold beyond that. Each node mints its own, its clock in microseconds or one more than its largest. If all
// nodes have voted, the token is the one that a majority has reached (of five, the third largest), and costs nothing.
// If not, it is the largest. A majority is told it before the grant counts, and each of these nodes accepts it only if
// it still has the vote. Either way every later one is larger, whichever majority grants it, unless a majority of the
// nodes has forgotten.
//
// # The servers
//
// Two programs that name different servers may both have a majority: of h1 to h5, and of h1 to h3 alone. So each node
// carries a mark (the key PREFIXredlock) that names its set of nodes, and a client refuses nodes of another set than
// the one it names. [New] and Open fail with an error that matches driver.ErrConflict then. Of a node that is connected
// to later the votes do not count, a warning is logged, and interlock doctor says so. The nodes are named by IDs that
// they keep, so programs may use different names for one server. A server that is named twice is refused too.
//
// The first client that reaches all nodes makes them a set. Until all were there at once, new nodes vote for nobody.
// The mark is read once for each connection, so all of this costs nothing but at the start.
//
// # A node that comes back empty
//
// A node that was restarted without its data must not vote until the longest lease has passed ([Options.LongestLease]):
// with its vote a second owner could get a majority. So the mark also has the run ID of the server. A vote over a
// connection without an answer about the mark does not count. A node without a mark rests until it has run for the
// longest lease, by uptime_in_seconds of its INFO. So does one whose mark is of an earlier run, unless it writes an
// append-only file: the mark, and what else it has, is from a snapshot, and the votes since then are forgotten. Those
// that the snapshot brought back keep others out until they end.
//
// A node that has rested without a mark gets its place in the set back, if a majority of the nodes or all of them know
// the set. Its place is the one with its name: that which the first client used, with the port; or that at which the
// client has seen it before. Under another name it does not vote. So replace a server with its address, or change the
// set.
//
// Only if all nodes are there, and none has a mark, they are taken for new and get it at once. A majority is not enough
// for that: they may have come back empty while the others, which are away, know of a hold. Nor is any node new beside
// one that has a mark of an earlier run.
//
// These cases the mark cannot show: a node that lost only its last writes (appendfsync everysec and a loss of power;
// appendonly that was switched on after a start from a snapshot); FLUSHALL and eviction on a node that goes on running;
// a restart of all nodes at once without data; a node's clock that is set forward after its start. With appendonly yes
// and appendfsync always nothing is forgotten, and nothing rests. Leases above LongestLease are refused.
//
// A hold does not get back the vote of a node that has forgotten it, so three restarts without data during one hold of
// five nodes end it, also one after the other. Its holder is told when the client is connected again to the third: all
// holds are renewed after each reconnection. A hold does get, with its next renewal, the vote of a node that could not
// be reached when it was acquired.
//
// # Changing the servers
//
// Servers are added, removed or replaced while locks are in use, in two steps. A client that names both lists takes no
// lock without a majority of each, so it excludes clients of the one and of the other:
//
//	redlock://h1,h2,h3                          before
//	redlock://h1,h2,h3,h4,h5?former=h1,h2,h3    1. restart one program after the other with both lists
//	redlock://h1,h2,h3,h4,h5                    2. when none runs with the former list alone, restart them with this
//
// All servers of both lists must be up when the first program of step 1 starts. No program, nor interlock doctor, may
// name new servers alone before that: if no server is on both lists, the change counts as over then. After the first
// program of step 2, programs with the former list are refused when they connect. One that still runs with its
// connections of before is not told: a program of step 2 and one of before step 1 do not exclude each other. With [New]
// the former clients are [Options.Former].
//
// Meanwhile more votes are needed than otherwise (of the five above, four), waits ask again and again, and what holds
// with the votes of one list alone is shown as waiting. Tokens go on growing if the servers' clocks differ by less than
// the change lasts. A new server must have no mark: delete the key PREFIXredlock, or all data, of one that was in
// another set. A server that was left out keeps its mark.
//
// # Waiting
//
// A request stands in the queue of every node, and gets each vote by a push when it is its turn there. Requests that
// come within a network's jitter of each other may stand in another order on each node, so that several have some votes
// and none enough. A request whose votes are no majority keeps them for a random time only: between v and v+1 units
// with v votes, a unit being four round trips, 4 ms at least, and twice as long after each try, up to 400 ms. So the
// one with the fewest gives them back first, and joins the end of all queues. When each of the others has done that
// once, they stand in one order everywhere. That is a matter of chance, which no bound excludes, but its expected
// length is a few units for each request that takes part. If somebody else has a majority, a waiter gives back only its
// votes, which the holder may need when a node fails, and keeps its places.
//
// A try that meets other tries, so that nobody gets a majority, is made eight times at most before it says that the
// lock is held.
//
// # Costs
//
//   - Acquire: one round trip, to all nodes at once, if all vote; two if not. A node that did not answer in time is not
//     waited for again until it does. The first time it costs twice an ordinary round trip, 10 ms at most; a try that
//     is refused, 100 ms, because only all nodes together tell the holder's token for certain.
//   - Release, renewals: one round trip to all nodes at once, which a majority ends. Break: two.
//   - A wait: as with redislock, on each node.
//   - A request is a goroutine for each node, until all have answered. A connection to each node.
//
// # What it cannot do
//
//   - Conversion: a holder of a read lock that also wants to write would need all nodes to answer alike.
//   - Semaphores: two majorities may have only one node in common, so five nodes with two permits each would let three
//     in.
//   - Named owners: two nodes may know different holds of an owner, so that they have no token in common. Without them
//     no owner upgrades a read.
//   - LockDelay: a node cannot tell the end of a hold that a majority had from that of one that never came about.
//   - First come, first served: see Waiting. Nearly so, in practice.
//   - Giving back and asking again in one step, conditions, latches, and several locks in one step.
//   - A push for a change of leader: elections are there, but an observer looks every second.
//   - A listing in parts: it is kept in memory until the last node has answered.
//   - Grant anything while a majority is away. With five nodes two may be.
//
// Whether a lock of this kind may be relied upon was argued by Martin Kleppmann, "How to do distributed locking"
// (https://martin.kleppmann.com/2016/02/08/how-to-do-distributed-locking.html), and Salvatore Sanfilippo, "Is Redlock
// safe?" (http://antirez.com/news/101). The first shows what pauses, delays and clock jumps do, and that the resource
// must check a token that grows, which the algorithm did not have. The second shows that delays before the end of the
// acquisition are seen by measuring, and that those after it hit every lock with a lease. Both hold here: the window of
// trust is measured, and resources can check the tokens.
//
// # Servers
//
// Tested with Redis 7.0. What package redislock says of servers, rights and settings holds for each node; the user
// needs +info as well, and RESP3. Persistence matters more than elsewhere: see above. Diagnose (interlock doctor) says
// whether two nodes are one server, how many there are, which rest, and how far their clocks are apart.
package redlock
