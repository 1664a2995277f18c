// The checks of limits: memory, buffers, and how long a Cluster may stand still. See check_findings.go for the list.

package redislock

import (
	"slices"
	"strings"
	"time"
)

const (
	// leastBuffer is the least limit for what waits to be read by a subscriber: some thousand pushes.
	leastBuffer = 1 << 20

	// fullMemory is the share of maxmemory, in percent, from which on a server counts as nearly full.
	fullMemory = 90

	// longNodeTimeout is the default of cluster-node-timeout. A primary is replaced a second or two after that time.
	// With the default Lease of 30 s, a hold whose renewal has just failed still has 20 s.
	longNodeTimeout = 15 * time.Second
)

// checkMemory: a full server that evicts nothing refuses new locks. Holds can still be renewed and released, because
// those scripts begin with a write that needs no memory.
func checkMemory(n *nodeFacts) *opinion {
	most, known := number(n.info, "maxmemory")
	used, counted := number(n.info, "used_memory")
	others, _ := number(n.info, "mem_not_counted_for_evict")
	switch used -= others; { // buffers of replicas and of the append-only file do not count against maxmemory
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

// checkCoverage: whether the slots of the other primaries are served while one primary is away.
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

// checkFailover: a hold is lost if its primary is not replaced before its lease ends.
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

// checkBuffers: the server closes a connection with a subscription when more unread bytes than its limit wait for it.
// All grants by push of a process come over one connection, so a burst of them must fit.
func checkBuffers(n *nodeFacts) *opinion {
	setting := strings.Fields(n.config["client-output-buffer-limit"])
	// The setting is one line with four words for each class: its name, the hard limit, the soft limit and the seconds
	// of the latter.
	i := slices.Index(setting, "pubsub")
	if i < 0 || i+3 >= len(setting) {
		return nil
	}
	hard, soft, seconds := wholeNumber(setting[i+1]), wholeNumber(setting[i+2]), setting[i+3]
	if (hard > 0 && hard < leastBuffer) || (soft > 0 && soft < leastBuffer) {
		return warn("set client-output-buffer-limit pubsub to 32mb 8mb 60, the server's default",
			"client-output-buffer-limit pubsub is %d %d %s: a burst of grants can break the connection",
			hard, soft, seconds)
	}
	return fine("client-output-buffer-limit pubsub is %d %d %s", hard, soft, seconds)
}
