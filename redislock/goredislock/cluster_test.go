package goredislock

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/go-redis/v9"
)

// beginCluster begins with a client of its own.
func beginCluster(t *testing.T, cluster *servers.ClusterRedis, h conn.Handler) *transport {
	t.Helper()
	return begin(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs()}), h)
}

// place is a slot, and a tag that puts names and channels into it.
type place struct {
	slot int
	tag  string
}

// places returns one place at each primary, of slots that no other test uses.
func places(t *testing.T, cluster *servers.ClusterRedis) []place {
	t.Helper()
	var found []place
	seen := map[*servers.RedisNode]bool{}
	for i := 0; len(found) < 3 && i < 1000; i++ {
		p := place{tag: "{" + t.Name() + strconv.Itoa(i) + "}"}
		p.slot = cluster.Slot(p.tag)
		if owner := cluster.Owner(p.slot); !seen[owner] {
			seen[owner] = true
			found = append(found, p)
		}
	}
	return found
}

// another returns a primary that does not own the slot.
func another(cluster *servers.ClusterRedis, slot int) *servers.RedisNode {
	owner := cluster.Owner(slot)
	for other := slot; ; other = (other + 2048) % 16384 {
		if n := cluster.Owner(other); n != owner {
			return n
		}
	}
}

func TestCluster(t *testing.T) {
	longrun.Only(t) // rueidisconn has it in every run
	if drivertest.Apart(t) {
		return
	}
	cluster := servers.RedisCluster(t, 3, 1, &servers.RedisOptions{
		// On a machine that stands still for a second no replica is to take over.
		Config: map[string]string{"cluster-node-timeout": "3000"},
	})
	for _, test := range []struct {
		name string
		run  func(t *testing.T, cluster *servers.ClusterRedis)
	}{
		{"Calls_GoToTheOwnersOfTheirSlots", callsGoToTheOwners},
		{"Nodes_AreThePrimaries", nodesAreThePrimaries},
		{"Listen_HearsWhatIsPublishedInTheSlot", listenHears},
		{"Unlisten_EndsWhatListenBegan", unlistenEnds},
		{"Calls_FollowASlotThatMoves", callsFollowASlot},
		{"Listen_FollowsASlotThatMoves", listenFollowsASlot},
		{"Batch_OfANodeThatHangs_DelaysNoOther", batchDelaysNoOther},
		{"Calls_AfterAPlannedFailover_GoToTheNewPrimary", callsAfterAPlannedFailover},
		{"Calls_AfterAFailover_GoToTheNewPrimary", callsAfterAFailover},
		{"Calls_WhenThePrimaryHangs_GoToTheNewOne", callsWhenThePrimaryHangs},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, cluster) })
	}
}

func callsGoToTheOwners(t *testing.T, cluster *servers.ClusterRedis) {
	c := beginCluster(t, cluster, newTeller())
	if !c.Sharded() {
		t.Error("a Cluster is not Sharded")
	}
	var calls []conn.Call
	for _, p := range places(t, cluster) {
		owner := cluster.Owner(p.slot).Addr()
		call, second := lockCall(t, p.tag), lockCall(t, p.tag)
		mustCall(t, c, lockCall(t, p.tag+"x")) // its source was sent
		before := ran(t, owner, "evalsha")
		if got := mustCall(t, c, call); got != "G" {
			t.Errorf("got %q", got)
		}
		if n := ran(t, owner, "evalsha") - before; n != 1 {
			t.Errorf("the owner of slot %d was asked %d times", p.slot, n)
		}
		acked := replicated(call)
		if r := c.Call(t.Context(), &acked); r.Err != nil || word(r) != "G" || r.Acked != 1 {
			t.Errorf("slot %d with a replica: %+v", p.slot, r)
		}
		calls = append(calls, call, second, acked)
	}
	for _, n := range cluster.Nodes() {
		admin(t, n.Addr(), "SCRIPT", "FLUSH")
	}
	for i, r := range runBatch(t.Context(), t, c, calls) {
		if want := []string{"G", "H", "G"}[i%3]; r.Err != nil || word(r) != want || r.Acked != i%3/2 {
			t.Errorf("call %d of a batch: %+v, want %s", i, r, want)
		}
	}
	asksForNoCommands(t, cluster)
}

func nodesAreThePrimaries(t *testing.T, cluster *servers.ClusterRedis) {
	c := beginCluster(t, cluster, newTeller())
	hung := cluster.Owner(0)
	check := func(hangs bool) {
		t.Helper()
		want := map[string]bool{}
		var alive []*servers.RedisNode
		for slot := 0; slot < 16384; slot += 1024 {
			if n := cluster.Owner(slot); (!hangs || n != hung) && !want[n.Addr()] {
				want[n.Addr()] = true
				alive = append(alive, n)
			}
		}
		clock := pace.Of(t, alive...)
		if hangs {
			hung.Stop()
			defer hung.Cont()
		}
		nodes, err := c.Nodes(t.Context())
		var got []string
		for _, n := range nodes {
			got = append(got, n.Addr())
		}
		switch wanted := slices.Sorted(maps.Keys(want)); {
		case err == nil && slices.Equal(got, wanted):
			for _, n := range nodes {
				if _, err := n.Do(t.Context(), "DBSIZE"); err != nil {
					t.Errorf("%s: %v", n.Addr(), err)
				}
			}
		case clock.Longest() > nodeTime/2:
			t.Logf("the machine stood still, so that of %v there were %v, %v", wanted, got, err)
		default:
			t.Errorf("Nodes: %v, %v, want those that answer: %v", got, err, wanted)
		}
	}
	check(false)
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if known := c.clients(ended); len(known) != 3 { // as when the Cluster cannot be asked
		t.Errorf("%d primaries are known, want 3", len(known))
	}
	for range 3 { // the cluster client asks any node
		check(true)
		cluster.AwaitReady()
		if cluster.Owner(0) != hung {
			break // its replica has taken over
		}
	}
}

func callsFollowASlot(t *testing.T, cluster *servers.ClusterRedis) {
	c := beginCluster(t, cluster, newTeller())
	p := places(t, cluster)[0]
	to := another(cluster, p.slot)
	held := lockCall(t, p.tag+"held")
	mustCall(t, c, held)
	there, free := lookCall(t, held), lookCall(t, lockCall(t, p.tag+"free"))
	look := func(when string) {
		t.Helper()
		calls := []conn.Call{there, free, there, free, replicated(there), replicated(free)}
		for i, r := range append(runBatch(t.Context(), t, c, calls), c.Call(t.Context(), &there),
			c.Call(t.Context(), &free)) {
			if r.Err != nil || strings.Contains(r.Text, held.Args[0]) != (i%2 == 0) || r.Acked != i/4%2-i/6 {
				t.Errorf("%s: call %d: %+v", when, i, r)
			}
		}
	}
	before := ran(t, to.Addr(), "asking")
	m := cluster.Migrate(p.slot, to)
	look("before the keys move")
	asked := ran(t, to.Addr(), "asking") - before
	if asked == 0 {
		t.Error("the new owner was not asked for what the old one has not")
	}
	m.MoveKeys()
	look("when the keys have moved")
	// A script of several keys cannot run if some of them are not there: those of locks that are new. A context that
	// ends while a try is under way leaves the outcome open.
	fresh := lockCall(t, p.tag+"free")
	eventually(t, "a lock that is new while its slot moves to be refused", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
		defer cancel()
		r := c.Call(ctx, &fresh)
		if r.Err == nil {
			t.Fatalf("a lock that is new while its slot moves: %+v", r)
		}
		return isRefused(r.Err)
	})
	m.Finish()
	look("when the slot has moved")
	if got := mustCall(t, c, held); got != "G" {
		t.Errorf("a lock that has moved: %q", got)
	}
	eventually(t, "the client to know the new owner", func() bool {
		mustCall(t, c, held)
		node, err := c.owner(t.Context(), p.tag)
		return err == nil && node.Options().Addr == to.Addr()
	})
	asksForNoCommands(t, cluster)
}

func asksForNoCommands(t *testing.T, cluster *servers.ClusterRedis) {
	t.Helper()
	for _, n := range cluster.Nodes() {
		if got := ran(t, n.Addr(), "command"); got != 0 {
			t.Errorf("COMMAND was run %d times: a user may have no right to", got)
		}
	}
}

func batchDelaysNoOther(t *testing.T, cluster *servers.ClusterRedis) {
	c := beginCluster(t, cluster, newTeller())
	var calls []conn.Call
	for _, p := range places(t, cluster) {
		call := lockCall(t, p.tag)
		mustCall(t, c, call)
		calls = append(calls, call, call)
	}
	hung := cluster.Owner(places(t, cluster)[0].slot) // of the first two calls
	clock := pace.Of(t, cluster.Owner(places(t, cluster)[1].slot), cluster.Owner(places(t, cluster)[2].slot))
	hung.Stop()
	defer cluster.AwaitReady()
	defer hung.Cont()
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	answered := 0
	var mu sync.Mutex
	begin := clock.Now()
	c.Batch(ctx, calls, func(i int, r conn.Reply) {
		mu.Lock()
		defer mu.Unlock()
		if hangs := i < 2; hangs != (r.Err != nil) {
			t.Errorf("call %d, to the node that hangs %v: %+v", i, hangs, r)
		}
		if r.Err == nil {
			if answered++; answered == 4 {
				cancel() // the others have come although this one hangs
			}
		}
	})
	if d := clock.Now() - begin; d > 500*time.Millisecond { // soon a replica takes over
		t.Errorf("took %v", d)
	}
}

func callsAfterAPlannedFailover(t *testing.T, cluster *servers.ClusterRedis) {
	c := beginCluster(t, cluster, newTeller())
	p := places(t, cluster)[0]
	call := replicated(lockCall(t, p.tag))
	mustCall(t, c, call)
	cluster.Failover(p.slot)
	if got := mustCall(t, c, lockCall(t, p.tag)); got != "H" {
		t.Errorf("got %q", got)
	}
	mustCall(t, c, call)
	cluster.AwaitReady()
}

func callsAfterAFailover(t *testing.T, cluster *servers.ClusterRedis) {
	h := newTeller()
	c := beginCluster(t, cluster, h)
	p := places(t, cluster)[0]
	channel := p.tag + "push"
	mustListen(t, c, channel)
	publishShard(t, cluster, p, channel)
	h.Want(t, pushed(0, channel, "news"))
	call := replicated(lockCall(t, p.tag))
	mustCall(t, c, call)
	cluster.KillOwner(p.slot)
	h.Want(t, told{Resumed: true})
	call.Replicas = 0
	eventually(t, "a call to succeed", func() bool { return c.Call(t.Context(), &call).Err == nil })
	eventually(t, "a subscription", func() bool { return c.Listen(t.Context(), 0, channel) == nil })
	publishShard(t, cluster, p, channel)
	h.WantAfterDrops(t, pushed(0, channel, "news"))
	for _, other := range places(t, cluster) {
		mustCall(t, c, lockCall(t, other.tag))
	}
	cluster.RestartDead()
}

func callsWhenThePrimaryHangs(t *testing.T, cluster *servers.ClusterRedis) {
	h := newTeller()
	c := beginCluster(t, cluster, h)
	p := places(t, cluster)[0]
	channel := p.tag + "push"
	mustListen(t, c, channel)
	call := replicated(lockCall(t, p.tag))
	mustCall(t, c, call)
	call.Replicas = 0
	old := cluster.Owner(p.slot)
	old.Stop()
	defer cluster.AwaitReady()
	defer old.Cont()
	cluster.AwaitFailover(p.slot, old)
	followsHung(t, c, call)
	mustListen(t, c, channel)
	publishShard(t, cluster, p, channel)
	h.WantAfterDrops(t, pushed(0, channel, "news"))
}

// followsHung waits until calls succeed although the server that they went to before hangs.
func followsHung(t *testing.T, c *transport, call conn.Call) {
	t.Helper()
	clock := pace.Process()
	begin := clock.Now()
	eventually(t, "a call to succeed while the old primary hangs", func() bool {
		ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
		defer cancel()
		return c.Call(ctx, &call).Err == nil
	})
	d := clock.Now() - begin
	t.Logf("calls failed for %v more", d)
	if d > 3*time.Second { // go-redis by itself looks anew every 10 s
		t.Errorf("after the failover calls failed for %v more", d)
	}
}

func mustListen(t *testing.T, c *transport, channel string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if err := c.Listen(ctx, 0, channel); err != nil {
		t.Fatalf("Listen: %v", err)
	}
}

func publishShard(t *testing.T, cluster *servers.ClusterRedis, p place, channel string) {
	t.Helper()
	admin(t, cluster.Owner(p.slot).Addr(), "SPUBLISH", channel, "news")
}

func subscribers(t *testing.T, node *servers.RedisNode, channel string) string {
	t.Helper()
	return fmt.Sprint(admin(t, node.Addr(), "PUBSUB", "SHARDNUMSUB", channel))
}
