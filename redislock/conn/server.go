package conn

import (
	"strconv"
	"strings"
)

// Greeting is what a server says of itself when it is greeted (HELLO).
type Greeting struct {
	RESP3   bool // it speaks RESP3 on this connection
	Replica bool // it is a replica or a sentinel
	Cluster bool // it is a node of a Cluster
	Major   int  // of its version; 0 if unknown
}

// ReadGreeting reads the answer to HELLO as [Node.Do] returns it: keys and values. It reports false for what is none.
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

// Suits says what is wrong with a server for locks, to a client that is one for a Cluster or not. The error matches
// [ErrReplica] or [ErrClusterNode]. All ways to a driver come through here.
func (g Greeting) Suits(cluster bool) error {
	switch {
	case cluster: // a replica in a Cluster sends its callers on
		return nil
	case g.Cluster: // it would refuse the locks of other nodes' slots
		return &RefusedError{ErrClusterNode}
	case g.Replica:
		return ErrReplica
	}
	return nil
}

// CheckServer says what is wrong with a server for locks: it is a replica, a Sentinel, or a node of a Cluster to a
// client that is none for a Cluster. hello is its answer to HELLO as [Node.Do] returns it. redislock.New and URLs check
// every server by this rule when they connect, and so must a [Conn] of another library.
func CheckServer(hello any, cluster bool) error {
	g, is := ReadGreeting(hello)
	if !is {
		return nil // too old to say who it is
	}
	return g.Suits(cluster)
}
