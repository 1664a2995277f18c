package goredislock

import (
	"context"
	"errors"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/go-redis/v9"
)

// The tests here are run by TestCluster.

func listenHears(t *testing.T, cluster *servers.ClusterRedis) {
	for _, protocol := range []int{2, 3} {
		h := newTeller()
		c := begin(t, redis.NewClusterClient(&redis.ClusterOptions{Addrs: cluster.Addrs(), Protocol: protocol}), h)
		for _, p := range places(t, cluster) {
			for _, channel := range []string{p.tag + "one", p.tag + "two"} {
				var callers sync.WaitGroup
				for range 10 {
					callers.Go(func() {
						if err := c.Listen(t.Context(), 0, channel); err != nil {
							t.Errorf("Listen: %v", err)
						}
					})
				}
				callers.Wait()
				publishShard(t, cluster, p, channel)
				h.Want(t, pushed(0, channel, "news"))
				owner := cluster.Owner(p.slot).Addr()
				before := ran(t, owner, "ssubscribe")
				mustListen(t, c, channel)
				if ran(t, owner, "ssubscribe") != before {
					t.Error("a second Listen asks the server")
				}
			}
		}
		c.mu.Lock()
		if len(c.feeds) != 3 {
			t.Errorf("%d connections to 3 nodes", len(c.feeds))
		}
		c.mu.Unlock()
		h.None(t)
	}
}

func unlistenEnds(t *testing.T, cluster *servers.ClusterRedis) {
	h := newTeller()
	c := beginCluster(t, cluster, h)
	p := places(t, cluster)[0]
	channel, owner := p.tag+"push", cluster.Owner(p.slot)
	gone := func() bool { return subscribers(t, owner, channel) == "["+channel+" 0]" }
	c.Unlisten(0, channel) // nothing to end
	mustListen(t, c, channel)
	c.Unlisten(0, channel)
	eventually(t, "nobody listens", gone)
	for range 100 { // in close succession the last one counts
		mustListen(t, c, channel)
		c.Unlisten(0, channel)
		mustListen(t, c, channel)
	}
	publishShard(t, cluster, p, channel)
	h.Want(t, pushed(0, channel, "news"))
	c.Unlisten(0, channel)
	eventually(t, "nobody listens", gone)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.Listen(ctx, 0, channel); !errors.Is(err, context.Canceled) {
		t.Errorf("Listen with a context that has ended: %v", err)
	}
	node, err := c.owner(t.Context(), channel)
	if err != nil {
		t.Fatal(err)
	}
	f, err := c.feedOf(node)
	if err != nil {
		t.Fatal(err)
	}
	for range 20 { // the subscription is still on its way when it is not wanted any more
		f.subscription(channel)
		c.Unlisten(0, channel)
	}
	eventually(t, "nobody listens", gone)
	h.None(t)
}

func listenFollowsASlot(t *testing.T, cluster *servers.ClusterRedis) {
	h := newTeller()
	c := beginCluster(t, cluster, h)
	p := places(t, cluster)[0]
	channel := p.tag + "push"
	for range 3 {
		mustListen(t, c, channel)
		publishShard(t, cluster, p, channel)
		h.Want(t, pushed(0, channel, "news"))
		m := cluster.Migrate(p.slot, another(cluster, p.slot))
		m.MoveKeys()
		m.Finish()
		h.Want(t, told{Resumed: true}) // the subscription has ended
	}
	h.None(t)
}
