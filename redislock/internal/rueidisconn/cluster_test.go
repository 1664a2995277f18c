package rueidisconn

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/redis/rueidis"
)

func clusterOption(c *servers.ClusterRedis) rueidis.ClientOption {
	return rueidis.ClientOption{InitAddress: c.Addrs(), DisableCache: true}
}

// inSlot returns a call that counts under a key of a slot.
func inSlot(slot int, name string) conn.Call {
	key := "{" + conn.Tag(uint16(slot)) + "}" + name
	return conn.Call{Script: incrScript, Slot: uint16(slot), Keys: []string{key}}
}

// slotsOf returns n slots of each primary, in turn.
func slotsOf(t *testing.T, cluster *servers.ClusterRedis, n int) []int {
	t.Helper()
	var mine []int
	counts := map[*servers.RedisNode]int{}
	for slot := 0; slot < conn.Slots; slot += conn.Slots / 64 {
		if owner := cluster.Owner(slot); counts[owner] < n {
			counts[owner]++
			mine = append(mine, slot)
		}
	}
	return mine
}

// another returns a primary that does not own the slot.
func another(t *testing.T, cluster *servers.ClusterRedis, slot int) *servers.RedisNode {
	t.Helper()
	owner := cluster.Owner(slot)
	for other := slot; ; other = (other + conn.Slots/8) % conn.Slots {
		if n := cluster.Owner(other); n != owner {
			return n
		}
	}
}

func TestCluster(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	cluster := servers.RedisCluster(t, 3, 1, &servers.RedisOptions{
		// On a machine that stands still for a second no replica is to take over.
		Config: map[string]string{"cluster-node-timeout": "3000"},
	})
	// At the end of all, because rueidis closes some of a Cluster's connections only after 5 s.
	leaks.Opened(t)
	t.Cleanup(leaks.Closed)
	for _, test := range []struct {
		name string
		run  func(t *testing.T, cluster *servers.ClusterRedis)
	}{
		{"Calls_GoToTheOwnersOfTheirSlots", callsGoToTheOwners},
		{"Nodes_AreThePrimaries", nodesAreThePrimaries},
		{"Listen_HearsWhatIsPublishedInTheSlot", listenHears},
		{"Listen_WithRESP2_HearsWithoutALink", listenHearsWithRESP2},
		{"Unlisten_EndsWhatListenBegan", unlistenEnds},
		{"Calls_FollowASlotThatMoves", callsFollowASlot},
		{"Listen_FollowsASlotThatMoves", listenFollowsASlot},
		{"Calls_FindANodeThatIsNew", callsFindANewNode},
		{"Batch_OfANodeThatHangs_DelaysNoOther", batchDelaysNoOther},
		{"Calls_AfterAPlannedFailover_GoToTheNewPrimary", callsAfterAPlannedFailover},
		{"Calls_AfterAFailover_GoToTheNewPrimary", callsAfterAFailover},
		{"Calls_WhenThePrimaryHangs_GoToTheNewOne", callsWhenThePrimaryHangs},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, cluster) })
	}
}

func callsGoToTheOwners(t *testing.T, cluster *servers.ClusterRedis) {
	c := start(t, clusterOption(cluster), newTeller())
	if !c.Sharded() {
		t.Error("a Cluster of Redis 7 is not Sharded")
	}
	links := map[*servers.RedisNode]conn.Link{}
	var calls []conn.Call
	for _, slot := range slotsOf(t, cluster, 3) {
		call := inSlot(slot, t.Name())
		calls = append(calls, call, call)
		text, link := mustCall(t, c, call)
		owner := cluster.Owner(slot)
		if links[owner] == 0 {
			links[owner] = link
		}
		if text != "1" || link != links[owner] || link == 0 {
			t.Errorf("slot %d: %q over link %d, want 1 over %d", slot, text, link, links[owner])
		}
		acked := call
		acked.Replicas, acked.ReplicaTimeout = 1, 5*time.Second
		if r := c.Call(t.Context(), &acked); r.Err != nil || r.Text != "2" || r.Acked != 1 {
			t.Errorf("slot %d with a replica: %+v", slot, r)
		}
	}
	if len(links) != 3 {
		t.Errorf("links to %d primaries", len(links))
	}
	for i, r := range runBatch(t, c, calls) {
		if want := strconv.Itoa(3 + i%2); r.Err != nil || r.Text != want ||
			r.Link != links[cluster.Owner(int(calls[i].Slot))] {
			t.Errorf("call %d of a batch: %+v, want %s", i, r, want)
		}
	}
}

func nodesAreThePrimaries(t *testing.T, cluster *servers.ClusterRedis) {
	c := start(t, clusterOption(cluster), newTeller())
	want := map[string]bool{}
	for slot := 0; slot < conn.Slots; slot += conn.Slots / 8 {
		want[cluster.Owner(slot).Addr()] = true
	}
	for _, n := range nodesOf(t, c, len(want)) {
		if !want[n.Addr()] {
			t.Errorf("%s is no primary", n.Addr())
		}
		if _, err := n.Do(t.Context(), "DBSIZE"); err != nil {
			t.Errorf("%s: %v", n.Addr(), err)
		}
	}
}

func callsFollowASlot(t *testing.T, cluster *servers.ClusterRedis) {
	c := start(t, clusterOption(cluster), newTeller())
	slot := slotsOf(t, cluster, 1)[0]
	old, later := inSlot(slot, t.Name()+"old"), inSlot(slot, t.Name()+"new")
	_, before := mustCall(t, c, old)
	to := another(t, cluster, slot)
	m := cluster.Migrate(slot, to)
	if _, link := mustCall(t, c, old); link != before {
		t.Errorf("a key that has not moved is served over link %d, want %d", link, before)
	}
	text, asked := mustCall(t, c, later)
	if text != "1" || asked == before {
		t.Errorf("a key that is new during the migration: %q over link %d", text, asked)
	}
	want := []string{"3", "2", "4", "3"}
	for i, r := range runBatch(t, c, []conn.Call{old, later, old, later}) {
		if r.Err != nil || r.Text != want[i] {
			t.Errorf("call %d of a batch: %+v, want %s", i, r, want[i])
		}
	}
	acked := later
	acked.Replicas, acked.ReplicaTimeout = 1, 5*time.Second
	if r := c.Call(t.Context(), &acked); r.Err != nil || r.Text != "4" || r.Acked != 1 {
		t.Errorf("with a replica: %+v", r)
	}
	m.MoveKeys()
	if text, link := mustCall(t, c, old); text != "5" || link != asked {
		t.Errorf("a key that has moved: %q over link %d, want 5 over %d", text, link, asked)
	}
	m.Finish()
	for i, r := range runBatch(t, c, []conn.Call{old, later}) {
		if r.Err != nil || r.Link != asked {
			t.Errorf("call %d after the migration: %+v", i, r)
		}
	}
	if got := c.owner(uint16(slot)).addr; got != to.Addr() {
		t.Errorf("the slot is thought to be at %s, want %s", got, to.Addr())
	}
}

// A node that has no slot is not in the table, so neither we nor rueidis know it before it is named by an ASK.
func callsFindANewNode(t *testing.T, cluster *servers.ClusterRedis) {
	slot := slotsOf(t, cluster, 1)[0]
	call := inSlot(slot, t.Name())
	to := another(t, cluster, slot)
	c := start(t, clusterOption(cluster), newTeller())
	strange := strangeClient{Client: c.client, hidden: to.Addr()}
	strange.known.Store(false)
	c.client = &strange
	if err := c.refresh(t.Context()); err != nil {
		t.Fatal(err)
	}
	m := cluster.Migrate(slot, to)
	if text, _ := mustCall(t, c, call); text != "1" {
		t.Errorf("got %q", text)
	}
	// If the call went to the wrong node it is not.
	eventually(t, "the client to be told of the node", strange.known.Load)
	m.Abort()
}

// strangeClient does not know a node until it has asked about a key that is there.
type strangeClient struct {
	rueidis.Client
	hidden string
	known  atomic.Bool
}

func (c *strangeClient) Nodes() map[string]rueidis.Client {
	nodes := c.Client.Nodes()
	if !c.known.Load() {
		delete(nodes, c.hidden)
	}
	return nodes
}

func (c *strangeClient) Do(ctx context.Context, command rueidis.Completed) rueidis.RedisResult {
	asked := command.Commands()[0] == "GET"
	r := c.Client.Do(ctx, command)
	if asked && r.NonRedisError() == nil {
		c.known.Store(true)
	}
	return r
}

func batchDelaysNoOther(t *testing.T, cluster *servers.ClusterRedis) {
	c := start(t, clusterOption(cluster), newTeller())
	var calls []conn.Call
	for _, slot := range slotsOf(t, cluster, 2) {
		call := inSlot(slot, t.Name())
		mustCall(t, c, call)
		calls = append(calls, call)
	}
	hung := cluster.Owner(int(calls[0].Slot))
	var others []*servers.RedisNode
	hangs := make([]bool, len(calls))
	for i, call := range calls {
		owner := cluster.Owner(int(call.Slot))
		if hangs[i] = owner == hung; !hangs[i] {
			others = append(others, owner)
		}
	}
	clock := pace.Of(t, others...)
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
		if hangs[i] != (r.Err != nil) {
			t.Errorf("call %d, to the node that hangs %v: %+v", i, hangs[i], r)
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
	c := start(t, clusterOption(cluster), newTeller())
	slot := slotsOf(t, cluster, 1)[0]
	call := inSlot(slot, t.Name())
	_, before := mustCall(t, c, call)
	cluster.Failover(slot)
	if text, link := mustCall(t, c, call); text != "2" || link == before {
		t.Errorf("got %q over link %d", text, link)
	}
	cluster.AwaitReady()
}

func callsAfterAFailover(t *testing.T, cluster *servers.ClusterRedis) {
	h := newTeller()
	c := start(t, clusterOption(cluster), h)
	slot := slotsOf(t, cluster, 1)[0]
	channel, publish := shardOf(slot, t.Name())
	if err := c.Listen(t.Context(), uint16(slot), channel); err != nil {
		t.Fatal(err)
	}
	_, before := mustCall(t, c, publish)
	h.Want(t, pushed(before, channel, "news"))
	old := cluster.KillOwner(slot)
	h.Want(t, told{Link: before})
	call := inSlot(slot, t.Name())
	eventually(t, "a call to succeed", func() bool {
		r := c.Call(t.Context(), &call)
		if r.Err != nil && !isRefused(r.Err) {
			t.Logf("not refused: %v", r.Err)
		}
		return r.Err == nil
	})
	h.Want(t, told{Link: before, Resumed: true})
	if err := c.Listen(t.Context(), uint16(slot), channel); err != nil {
		t.Fatal(err)
	}
	_, link := mustCall(t, c, publish)
	h.Want(t, pushed(link, channel, "news"))
	for _, other := range slotsOf(t, cluster, 2) {
		mustCall(t, c, inSlot(other, t.Name()))
	}
	if now := cluster.AwaitFailover(slot, old); c.owner(uint16(slot)).addr != now.Addr() {
		t.Errorf("the slot is thought to be at %s, want %s", c.owner(uint16(slot)).addr, now.Addr())
	}
	cluster.RestartDead()
}

func callsWhenThePrimaryHangs(t *testing.T, cluster *servers.ClusterRedis) {
	h := newTeller()
	c := start(t, clusterOption(cluster), h)
	slot := slotsOf(t, cluster, 1)[0]
	call := inSlot(slot, t.Name())
	_, before := mustCall(t, c, call)
	old := cluster.Owner(slot)
	old.Stop()
	defer cluster.AwaitReady()
	defer old.Cont()
	ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
	defer cancel()
	if r := c.Call(ctx, &call); r.Err == nil {
		t.Errorf("a server that hangs answers %+v", r)
	}
	cluster.AwaitFailover(slot, old)
	followsHung(t, c, call)
	h.Want(t, told{Link: before})
}
