package redislock

import (
	"slices"
	"strings"
	"time"
)

const (
	// leastBuffer is the least limit for what waits to be read by a subscriber: some thousand pushes.
	leastBuffer = 1 << 20

	// fullMemory is the part of maxmemory, in percent, from which on a server counts as nearly full.
	fullMemory = 90

	// longNodeTimeout is cluster-node-timeout's default. A primary is replaced a second or two after that, and with the
	// default Lease of 30 s a hold has 20 s left then if its renewal has just failed.
	longNodeTimeout = 15 * time.Second
)

// checkMemory: a server that is full, and evicts nothing, refuses new locks. Those that are held go on.
func checkMemory(n *nodeFacts) *opinion {
	most, known := number(n.info, "maxmemory")
	used, counted := number(n.info, "used_memory")
	others, _ := number(n.info, "mem_not_counted_for_evict")
	switch used -= others; {
	case !known || !counted:
		return nil
	case most == 0:
		return fine("maxmemory is not set")
	case used >= most/100*fullMemory:
		return warn("raise maxmemory, or remove keys of other programs; locks take little",
			"%d of %d MiB are in use (maxmemory): a server that is full refuses new locks", used>>20, most>>20)
	}
	return fine("%d of %d MiB are in use (maxmemory)", used>>20, most>>20)
}

// checkCoverage: whether the slots of the other primaries go on while one is away.
func checkCoverage(n *nodeFacts, primaries int) *opinion {
	switch value := n.config["cluster-require-full-coverage"]; {
	case n.info["cluster_enabled"] != "1" || primaries < 2:
		return nil
	case value == "yes":
		return warn("set cluster-require-full-coverage no on all nodes, unless other programs need it",
			"cluster-require-full-coverage is yes: "+
				"while one primary is away, locks of all slots wait, and renewals fail")
	case value == "no":
		return fine("other slots go on while a primary is away (cluster-require-full-coverage is no)")
	}
	return nil
}

// checkFailover: a hold is lost if its primary is not replaced within the rest of its lease.
func checkFailover(n *nodeFacts) *opinion {
	ms, known := number(n.config, "cluster-node-timeout")
	if !known || n.info["cluster_enabled"] != "1" {
		return nil
	}
	timeout := time.Duration(ms) * time.Millisecond
	if timeout > longNodeTimeout {
		return warn("set cluster-node-timeout to 15000 or less, or give locks a longer Lease",
			"cluster-node-timeout is %v: "+
				"a primary that fails is replaced after that, and holds of 30 s are lost meanwhile", timeout)
	}
	return fine("a primary that fails is replaced after some %v (cluster-node-timeout)", timeout)
}

// checkBuffers: a connection with a subscription is closed when more than its limit waits to be read.
func checkBuffers(n *nodeFacts) *opinion {
	setting := strings.Fields(n.config["client-output-buffer-limit"])
	i := slices.Index(setting, "pubsub")
	if i < 0 || i+3 >= len(setting) {
		return nil
	}
	hard, soft, seconds := micros(setting[i+1]), micros(setting[i+2]), setting[i+3]
	if (hard > 0 && hard < leastBuffer) || (soft > 0 && soft < leastBuffer) {
		return warn("set client-output-buffer-limit pubsub to 32mb 8mb 60, the server's default",
			"client-output-buffer-limit pubsub is %d %d %s: a burst of grants can break the connection",
			hard, soft, seconds)
	}
	return fine("client-output-buffer-limit pubsub is %d %d %s", hard, soft, seconds)
}
