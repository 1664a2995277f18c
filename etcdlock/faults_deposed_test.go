package etcdlock_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// A leader that stood still, or hears nothing of the others, goes on answering signs of life from its own memory until
// it notices. Its successor does not know of them and frees the lock by what it knows. So such an answer must not
// lengthen the holder's trust.
func TestDeposedLeader_AnswersFromItsMemory_HolderIsOutBeforeTheNextIsIn(t *testing.T) {
	t.Parallel()
	n := servers.NewNetwork(t)
	c := servers.EtcdCluster(t, 3, &servers.EtcdOptions{Network: n})
	locktest.OnceInTime(t, 3, func(try int) string {
		return deposed(t, n, c, fmt.Sprint("lock ", try))
	})
}

// deposed returns what the holder had not been told when the next was in.
func deposed(t *testing.T, n *servers.Network, c *servers.EtcdNodes, name string) (late string) {
	const lease = 6 * time.Second
	leader := c.Leader(t)
	followers := slices.DeleteFunc(slices.Clone(c.Nodes()), func(n *servers.EtcdNode) bool { return n == leader })
	var most []*servers.Member
	var addrs []string
	for _, f := range followers {
		most, addrs = append(most, f.Member()), append(addrs, f.Addr())
	}
	// The holder knows the leader alone, and the next all others.
	// After the cut members need some seconds until they hear each other again.
	holder := openLocks(t, etcdURL(leader.Addr())+"?request-timeout=15s",
		&interlock.Options{Lease: lease, CloseTimeout: time.Millisecond})
	defer holder.Close()
	next := openLocks(t, etcdURL(addrs...)+slowElection, &interlock.Options{Lease: calm})
	defer next.Close()
	held := mustLock(t, holder, name)
	lateness := locktest.WatchEnd(t, held)
	// One sign of life is due after a third of the lease, and without an answer the last one shortly before its end.
	const before = lease / 8
	resume := time.After(lease - before)
	leader.Stop()
	if err := n.Split([]*servers.Member{leader.Member()}, most); err != nil {
		t.Fatal(err)
	}
	// Followers that come back wait for no leader before they elect one.
	c.Restart(t, followers...)
	in := locking(t, next, name)
	<-resume
	leader.Cont()
	l := receive(t, "the next to get in", in)
	late = lateness(l)
	if err := n.Heal(); err != nil {
		t.Fatal(err)
	}
	mustUnlock(t, l)
	_ = c.Leader(t)                          // all members agree on it again
	mustUnlock(t, mustLock(t, holder, name)) // with a session of its own again
	return late
}
