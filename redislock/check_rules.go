// The checks of what a server is: its role, version, Cluster, eviction, writes, replicas and persistence. Each returns
// nil if INFO does not tell. check_findings.go has the list.

package redislock

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/interlock-go/interlock/redislock/conn"
)

// oldest and oldestCluster are the first versions, as major*100+minor, that have what the scripts need: 6.2, and in a
// Cluster 7.0 for its sharded channels.
const oldest, oldestCluster = 602, 700

// checkRole: locks are taken on a primary. A Sentinel keeps no data, and a replica would refuse each script.
func checkRole(n *nodeFacts) *opinion {
	switch role, known := n.info["role"]; {
	case n.info["redis_mode"] == "sentinel":
		return fail("write redis+sentinel:// and the name of the primary", "this is a Sentinel, which keeps no data")
	case !known:
		return nil
	case role != "master":
		return fail("name the primary, or let Sentinels name it with redis+sentinel://",
			"the server is a replica: locks are taken on the primary")
	}
	return fine("it is a primary")
}

// version returns the product, and the version as text and as a number (7.0.15 is 700). The number is 0 if it cannot be
// read.
func (n *nodeFacts) version() (product, text string, number int) {
	product, text = "Redis", n.info["redis_version"]
	if v := n.info["valkey_version"]; v != "" {
		product, text = "Valkey", v
	}
	parts := strings.SplitN(text+".0", ".", 3)
	major, errMajor := strconv.Atoi(parts[0])
	minor, errMinor := strconv.Atoi(parts[1])
	if errMajor != nil || errMinor != nil {
		return product, text, 0
	}
	return product, text, major*100 + minor
}

// checkVersion: too old a server lacks commands that the scripts use. An unknown version is only a warning.
func checkVersion(n *nodeFacts) *opinion {
	if n.info == nil {
		return nil
	}
	product, text, version := n.version()
	switch {
	case version == 0:
		return warn("use Redis 6.2 or later, or Valkey", "the server does not tell a version that can be read")
	case version < oldest:
		return fail("use Redis 6.2 or later, or Valkey", "%s %s is too old", product, text)
	// Sharded channels came with Redis 7.0. In a Cluster, a push by another channel would go to every node.
	case version < oldestCluster && n.info["cluster_enabled"] == "1":
		return fail("use Redis 7.0 or later, or Valkey",
			"%s %s is too old for a Cluster: it has no sharded channels", product, text)
	}
	return fine("%s %s", product, text)
}

// checkCluster reports what the server itself says about its Cluster, and a client that does not know that it is one.
// Such a client would send each script to this node, and most would be answered MOVED.
func checkCluster(n *nodeFacts, f *facts) *opinion {
	const advice = "see CLUSTER NODES; locks of the slots that are not served cannot be taken or renewed"
	if n.info["cluster_enabled"] != "1" {
		return nil
	}
	_, _, version := n.version()
	size, known := number(n.cluster, "cluster_size")
	assigned, _ := number(n.cluster, "cluster_slots_assigned")
	sound, _ := number(n.cluster, "cluster_slots_ok")
	switch state := n.cluster["cluster_state"]; {
	// A client of an older one is told by checkVersion.
	case !f.sharded && version >= oldestCluster:
		return fail("write redis+cluster:// (or make the client one for a Cluster)",
			"this is a node of a Cluster, but the client takes it for a server that stands alone")
	case !known:
		return nil
	case state != "ok":
		return fail(advice, "cluster_state is %s", state)
	case assigned < conn.Slots:
		return fail(advice, "%d of %d slots belong to no node", conn.Slots-assigned, conn.Slots)
	case sound < conn.Slots:
		return warn(advice, "%d of %d slots are on nodes that may be down", conn.Slots-sound, conn.Slots)
	case len(f.nodes) < size:
		return warn(advice, "%d of %d primaries have answered", len(f.nodes), size)
	}
	return fine("the Cluster is sound, %d primaries", size)
}

// checkEviction: locks are keys with a time to live, so every policy but noeviction may remove them. That is a failure
// only if maxmemory is set; without a limit nothing is evicted yet.
func checkEviction(n *nodeFacts) *opinion {
	policy, known := n.info["maxmemory_policy"]
	if !known {
		return nil
	}
	const advice = "set maxmemory-policy noeviction: a server that is full then refuses new locks and keeps those " +
		"that are held"
	// Keys that were evicted may have been locks, so the number is told.
	limit, evicted := n.info["maxmemory"], ""
	if count := n.info["evicted_keys"]; count != "" && count != "0" {
		evicted = "; " + count + " keys have been evicted since it started"
	}
	switch {
	case policy != "noeviction" && limit != "0":
		return fail(advice,
			"maxmemory-policy is %s and maxmemory %s bytes: a server that is full removes locks that are held%s",
			policy, limit, evicted)
	case policy != "noeviction":
		return warn(advice,
			"maxmemory-policy is %s: if somebody sets maxmemory, locks that are held may be removed%s", policy, evicted)
	}
	return fine("nothing is evicted (maxmemory-policy is noeviction)")
}

// checkWrites: a server that cannot save its data, or lacks replicas that it must have, refuses all writes.
func checkWrites(n *nodeFacts) *opinion {
	if n.info == nil {
		return nil
	}
	need, set := strconv.Atoi(n.config["min-replicas-to-write"])
	good, counted := number(n.info, "min_slaves_good_slaves")
	switch {
	case n.info["loading"] == "1" || n.info["async_loading"] == "1":
		return fail("wait until it has read its data", "the server is loading its data")
	// A failed append-only file refuses writes always; a failed snapshot only with stop-writes-on-bgsave-error, which
	// CONFIG GET is not asked for. So the latter is only a warning.
	case n.info["aof_last_write_status"] == "err":
		return fail("see the server's log; is its disk full?",
			"the server could not write its append-only file, so it refuses writes")
	case n.info["rdb_last_bgsave_status"] == "err":
		return warn("see the server's log; is its disk full?",
			"the last snapshot failed: unless stop-writes-on-bgsave-error is no, the server refuses writes")
	case set == nil && counted && good < need:
		return fail("start the replicas, or lower min-replicas-to-write",
			"%d of the %d replicas of min-replicas-to-write are there, so the server refuses writes", good, need)
	case counted && good == 0:
		return fail("start the replicas, or set min-replicas-to-write to 0",
			"min-replicas-to-write is set but no replica is there, so the server refuses writes")
	}
	return fine("writes are accepted")
}

// checkReplicas compares the replicas that follow with the number that each grant waits for. The promoted replica may
// be any of them, so only waiting for all of them keeps every grant through a failover.
func checkReplicas(n *nodeFacts, wanted int) *opinion {
	if n.info["role"] != "master" {
		return nil
	}
	online := n.online()
	least := ""
	if v := n.config["min-replicas-to-write"]; v != "" {
		least = "; min-replicas-to-write is " + v
	}
	switch {
	// This comes before every warning: such a client gets no lock at all.
	case online < wanted:
		return fail("start the missing replicas, or wait for fewer",
			"%d replicas follow, but each lock waits for %d: none can be taken or renewed%s", online, wanted, least)
	case wanted == 0 && online > 0:
		return warn(
			fmt.Sprintf(
				"set Options.Replicas (replicas=%d in the URL) to all replicas that are configured; "+
					"min-replicas-to-write shortens the time in which locks can be lost", online),
			"%d replicas follow, and no lock waits for them: a failover can lose the latest locks, which are then "+
				"granted twice%s", online, least)
	case online > wanted:
		return warn(
			fmt.Sprintf("set Options.Replicas (replicas=%d in the URL) to all replicas that are configured", online),
			"%d replicas follow, but each lock waits for only %d: the one that is promoted may not have it%s", online,
			wanted, least)
	case wanted > 0:
		return fine("%d replicas follow, and each lock waits for all%s", online, least)
	}
	return fine("no replica follows, so there is no failover that could lose locks%s", least)
}

// checkPersistence says what a restart forgets. Without the answers to CONFIG GET it says nothing of appendfsync and
// snapshots.
func checkPersistence(n *nodeFacts) *opinion {
	const advice = "set appendonly yes and appendfsync always, or do not restart it within a lease"
	aof, known := n.info["aof_enabled"]
	if !known {
		return nil
	}
	save, saveKnown := n.config["save"]
	fsync := n.config["appendfsync"]
	switch {
	case aof == "1" && fsync == "always":
		return fine("a restart keeps all locks (appendfsync is always)")
	// Without CONFIG GET, INFO alone tells that there is a log, not how often it is forced to disk.
	case aof == "1" && fsync == "":
		return fine("a restart of the process keeps all locks (appendonly is yes)")
	case aof == "1":
		return warn("set appendfsync always if a loss of power must not forget locks",
			"appendfsync is %s: a restart of the process keeps all locks, but a loss of power forgets the latest, "+
				"which are then granted twice", fsync)
	case saveKnown && save == "":
		return warn(advice, "nothing is written to disk: a restart forgets all locks, which are then granted twice")
	case saveKnown:
		return warn(advice,
			"only snapshots are written (save %s): a restart forgets all locks since the last, which are then "+
				"granted twice", save)
	}
	return warn(advice, "appendonly is no: a restart forgets locks, which are then granted twice")
}
