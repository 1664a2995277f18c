// What a server says about itself when a connection begins. The transports ask, and refuse servers that are not fit for
// locks.

package conn

import (
	"strconv"
	"strings"
)

// Greeting is what a server says of itself in its answer to HELLO.
type Greeting struct {
	RESP3   bool // it speaks RESP3 on this connection
	Replica bool // it is a replica or a sentinel
	Cluster bool // it is a node of a Cluster
	Major   int  // of its version; 0 if not known
}

// ReadGreeting reads the answer to HELLO as [Node.Do] returns it, a list of keys and values. It reports false if it is
// none.
func ReadGreeting(hello any) (g Greeting, is bool) {
	list, is := hello.([]any)
	for i := 0; i+1 < len(list); i += 2 {
		switch list[i] {
		case "proto":
			g.RESP3 = list[i+1] == int64(3)
		case "role":
			g.Replica = g.Replica || list[i+1] != "master"
		case "mode": // a sentinel tells no role
			g.Replica = g.Replica || list[i+1] == "sentinel"
			g.Cluster = list[i+1] == "cluster"
		case "version":
			version, _ := list[i+1].(string)
			major, _, _ := strings.Cut(version, ".")
			g.Major, _ = strconv.Atoi(major) // 0 if unknown
		}
	}
	return g, is
}

// Suits says what makes a server unfit for locks, for a client that is one for a Cluster or not. The error matches
// [ErrReplica] or [ErrClusterNode]. All ways to a driver come through here.
func (g Greeting) Suits(cluster bool) error {
	switch {
	case cluster: // a replica in a Cluster redirects its callers
		return nil
	case g.Cluster: // it would refuse the locks of other nodes' slots
		return &RefusedError{ErrClusterNode}
	case g.Replica:
		return ErrReplica
	}
	return nil
}

// CheckServer says what makes a server unfit for locks: it is a replica, a Sentinel, or a node of a Cluster to a client
// that is none for a Cluster. hello is its answer to HELLO as [Node.Do] returns it. redislock.New and URLs check every
// server by this rule when they connect, and a [Conn] of another library must do so too.
func CheckServer(hello any, cluster bool) error {
	g, is := ReadGreeting(hello)
	if !is {
		return nil // too old to say who it is
	}
	return g.Suits(cluster)
}
