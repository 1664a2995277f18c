package zklock

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// apart starts an ensemble whose servers can be cut off from each other, with sessions of that tick.
func apart(t *testing.T, tick time.Duration, syncLimit string) (*servers.Network, *servers.ZooKeeperEnsemble) {
	t.Helper()
	n := servers.NewNetwork(t)
	return n, servers.NewZooKeeperEnsemble(t, &servers.ZooKeeperOptions{
		Tick: tick, Network: n, Config: map[string]string{"syncLimit": syncLimit},
	})
}

// others returns the servers beside one, and where they are in the network.
func others(e *servers.ZooKeeperEnsemble, one *servers.ZooKeeperNode) (addrs []string, members []*servers.Member) {
	for _, n := range e.Nodes() {
		if n != one {
			addrs, members = append(addrs, n.Addr()), append(members, n.Member())
		}
	}
	return addrs, members
}

// A leader that is cut off goes on as if it led, for syncLimit+1 ticks: it greets, and answers what it knows by itself.
// The others have elected another meanwhile, which has ended the session. None of what the old one says keeps the hold
// trusted, and none of it is shown.
func TestDeposedLeader_KeepsNoHoldTrustedAndShowsNothing(t *testing.T) {
	t.Parallel()
	n, e := apart(t, 500*time.Millisecond, "40") // the old leader goes on for 20 s
	leader := e.Leader()
	addrs, members := others(e, leader)
	root, o := freshRoot(), leased(2*time.Second)
	c, p := openLocks(t, urlOf(root, leader.Addr()), o), servers.NewProxy(t, leader.Addr())
	reconnecting := openLocks(t, urlOf(root, p.Addr()), o)
	next := openLocks(t, urlOf(root, addrs...), o)
	l, also := mustLock(t, c, "lock"), mustLock(t, reconnecting, "also")
	lock, another := locktest.NewInside(t, "lock"), locktest.NewInside(t, "also")
	lock.Enter(l)
	another.Enter(also)
	if err := n.Split([]*servers.Member{leader.Member()}, members); err != nil {
		t.Fatal(err)
	}
	// So that they do not wait for it as long as it waits for them.
	e.Restart(slices.DeleteFunc(e.Nodes(), func(n *servers.ZooKeeperNode) bool { return n == leader })...)
	p.Reset() // the old leader greets this one anew
	for _, w := range []*locktest.Inside{lock, another} {
		soon(t, "the others to grant what the old leader had granted", func() bool {
			got, err := next.Lock(bounded(t), w.Name)
			if err != nil {
				return false // they have no leader yet
			}
			w.Enter(got) // fails if the first may still be trusted
			return true
		})
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if info, err := c.Look(ctx, interlock.KindMutex, "lock"); err == nil && info.Holders[0].Token <= l.Token() {
		t.Errorf("the old leader shows the holder of before: %+v", info)
	}
	gone(t, l)
	gone(t, also)
}

// A follower tells the leader only now and then of which clients it has heard. One that is cut off with its client
// right after a transaction takes that knowledge along, and the leader counts from what it was told before.
func TestFollower_CutOffAfterATransaction_LeavesNoTrustBehind(t *testing.T) {
	t.Parallel()
	const lease = 12 * time.Second
	n, e := apart(t, 250*time.Millisecond, "4")
	follower := e.Followers()[0]
	addrs, members := others(e, follower)
	root := freshRoot()
	c := openLocks(t, urlOf(root, follower.Addr()), leased(lease))
	next := startLockBehind(t, c, urlOf(root, addrs...), lease)
	// Shortly before the next sign of life, and the library's own.
	<-time.After(lease/3 - 300*time.Millisecond)
	mustUnlock(t, mustLock(t, c, "another"))
	if err := n.Split([]*servers.Member{follower.Member()}, members); err != nil {
		t.Fatal(err)
	}
	next()
}

// startLockBehind has c hold a lock and another client wait for it. The function that it returns waits until that one
// has it, and fails if c may still trust its hold.
func startLockBehind(t *testing.T, c *interlock.Client, url string, lease time.Duration) (next func()) {
	t.Helper()
	w, l := locktest.NewInside(t, "lock"), mustLock(t, c, "lock")
	w.Enter(l)
	waiter := startLock(t, url, leased(lease), "lock")
	return func() {
		t.Helper()
		w.Enter(waiter.granted("after the session of the holder has ended").l)
		gone(t, l)
	}
}
