// Package goredislock lets a program that uses go-redis have the locks of package [redislock] over the client that it
// has already, instead of a second one:
//
//	client := redis.NewClient(&redis.Options{Addr: "localhost:6379"})
//	engine, err := goredislock.New(client, nil)
//	locks, err := interlock.New(engine, nil)
//	defer client.Close()
//	defer engine.Close()
//	defer locks.Close()
//
// Each closes what it has opened and no more: the locks leave the engine open, and the engine the client. So all three
// are closed, the client last.
//
// It takes a [redis.Client] of one server, one of Sentinels ([redis.NewFailoverClient]), and a [redis.ClusterClient]. A
// [redis.Ring] is refused: when one of its servers does not answer, it takes another one for the same keys. Wrappers of
// clients are refused too; hooks are fine.
//
// Clients of both libraries share locks. What package redislock says of guarantees, deaths and servers holds here too.
//
// # Costs
//
// A plain client of one server tells how it connects, and the driver opens two connections in the same way: by its
// dialer, with its user, password or provider of these, its database and its name. A lock costs what it costs by URL
// then. Commands pass the client by: its hooks, its pool and its statistics know nothing of them, and locks go on when
// it is closed.
//
// Clients of Sentinels and Clusters do not tell their addresses, and some options cannot be met from outside (see
// [New]). Then commands go over the client, and with [NewPooled] always. That costs two to three times as much:
//
//   - A hand-off costs one round trip more: a push comes over another connection than the answer before, so the instant
//     of the grant cannot be told from it, and the waiter asks the server.
//   - Each call takes a connection of the client's pool for one round trip. PoolSize bounds how many run at a time;
//     when there is no connection within PoolTimeout, a lock is refused as unavailable, and a renewal is tried again. A
//     wait for a lock takes no connection. With Options.Replicas a call keeps its connection until the replicas have
//     acknowledged it.
//   - Each call runs in a goroutine of its own, about a microsecond.
//   - Connections beside the pool: one for pushes, and in a Cluster one more from each node at which locks are waited
//     for.
//
// # The client's options
//
// What follows is about commands that go over the client.
//
// Retries (MaxRetries) do not apply: a call whose outcome is unknown is not sent again by go-redis, because interlock
// does it when it is safe. Refusals that pass (a failover, a slot that moves, a server that loads its data) are waited
// for, up to 2 seconds.
//
// All calls return when their contexts end, whatever ContextTimeoutEnabled says. What such a call leaves behind in the
// client ends with ReadTimeout and DialTimeout, so do not switch these off: a server that hangs would keep a connection
// of the pool and a goroutine for each call. ReadTimeout may be shorter than Options.ReplicaTimeout.
//
// A connection for pushes on which nothing is heard for 6 to 8 seconds, though the server was pinged, is made anew.
// Until then waiters learn of a grant by their heartbeat, a second later.
//
// # Limits
//
//   - A failover client does not tell the address of its primary, so findings and nodes call it "the primary".
//   - Hooks of a ClusterClient itself see only calls that are redirected; those that are set on its nodes (OnNewNode)
//     see all.
//   - With Options.Replicas in a Cluster, locks that are new in a slot which is on its way to a node that has no slot
//     yet are unavailable until it has arrived.
//   - The user needs what package redislock lists. Of what go-redis sends by itself, CLIENT SETINFO and CLIENT
//     MAINT_NOTIFICATIONS fill the ACL LOG of a user who may not run them, and do no other harm.
//
// # Versions
//
// Tested with go-redis 9.19 and 9.23. Before 9.19 a client could not be told to send a command once.
package goredislock
