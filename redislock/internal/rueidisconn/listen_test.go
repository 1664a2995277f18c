package rueidisconn

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock/conn"
)

// The tests here are run by TestCluster.

// shardOf returns a channel in a slot, and a call that publishes to it.
func shardOf(slot int, name string) (string, conn.Call) {
	channel := "{" + conn.Tag(uint16(slot)) + "}" + name
	return channel, conn.Call{Script: shardScript, Slot: uint16(slot), Keys: []string{channel}, Args: []string{"news"}}
}

func listenHears(t *testing.T, cluster *servers.ClusterRedis) {
	h := newTeller()
	c := start(t, clusterOption(cluster), h)
	for _, slot := range slotsOf(t, cluster, 2) {
		channel, publish := shardOf(slot, t.Name())
		var callers sync.WaitGroup
		for range 10 {
			callers.Go(func() {
				if err := c.Listen(t.Context(), uint16(slot), channel); err != nil {
					t.Errorf("Listen: %v", err)
				}
			})
		}
		callers.Wait()
		_, link := mustCall(t, c, publish)
		h.Want(t, pushed(link, channel, "news"))
		commands := adminDo(t, cluster.Owner(slot).Addr(), "INFO", "commandstats")
		if err := c.Listen(t.Context(), uint16(slot), channel); err != nil {
			t.Error(err)
		}
		if again := adminDo(t, cluster.Owner(slot).Addr(), "INFO",
			"commandstats"); subscribes(again) != subscribes(commands) {
			t.Error("a second Listen asks the server")
		}
	}
	h.None(t)
}

func listenHearsWithRESP2(t *testing.T, cluster *servers.ClusterRedis) {
	h := newTeller()
	option := clusterOption(cluster)
	option.AlwaysRESP2 = true
	c := start(t, option, h)
	for _, slot := range slotsOf(t, cluster, 1) {
		channel, publish := shardOf(slot, t.Name())
		if err := c.Listen(t.Context(), uint16(slot), channel); err != nil {
			t.Fatal(err)
		}
		if _, link := mustCall(t, c, publish); link != 0 {
			t.Errorf("link %d", link)
		}
		h.Want(t, pushed(0, channel, "news"))
		c.Unlisten(uint16(slot), channel)
		eventually(t, "nobody listens", func() bool {
			return adminDo(t, cluster.Owner(slot).Addr(), "PUBSUB", "SHARDNUMSUB", channel) == "["+channel+" 0]"
		})
	}
	h.None(t)
}

// subscribes returns the part about SSUBSCRIBE of INFO commandstats.
func subscribes(info string) string {
	_, stats, _ := strings.Cut(info, "cmdstat_ssubscribe:calls=")
	calls, _, _ := strings.Cut(stats, ",")
	return calls
}

func unlistenEnds(t *testing.T, cluster *servers.ClusterRedis) {
	h := newTeller()
	c := start(t, clusterOption(cluster), h)
	slot := slotsOf(t, cluster, 1)[0]
	channel, publish := shardOf(slot, t.Name())
	listen := func() {
		t.Helper()
		if err := c.Listen(t.Context(), uint16(slot), channel); err != nil {
			t.Fatalf("Listen: %v", err)
		}
	}
	subscribers := func() string {
		return adminDo(t, cluster.Owner(slot).Addr(), "PUBSUB", "SHARDNUMSUB", channel)
	}
	listen()
	c.Unlisten(uint16(slot), channel)
	eventually(t, "nobody listens", func() bool { return subscribers() == "["+channel+" 0]" })
	c.Unlisten(uint16(slot), channel) // nothing to end
	for range 100 {                   // in close succession the last one counts
		listen()
		c.Unlisten(uint16(slot), channel)
		listen()
	}
	_, link := mustCall(t, c, publish)
	h.Want(t, pushed(link, channel, "news"))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	c.Unlisten(uint16(slot), channel)
	// It does not wait for the confirmation. On a busy machine that may have come before it looks at the context.
	if err := c.Listen(ctx, uint16(slot), channel); err != nil && !errors.Is(err, context.Canceled) {
		t.Errorf("Listen with a context that has ended: %v", err)
	}
	c.Unlisten(uint16(slot), channel)
	eventually(t, "nobody listens", func() bool { return subscribers() == "["+channel+" 0]" })
	l := c.owner(uint16(slot)).link.Load()
	for range 20 { // the subscription is still on its way when it is not wanted any more
		_ = c.Listen(ctx, uint16(slot), channel)
		c.Unlisten(uint16(slot), channel)
		eventually(t, "nothing is left", func() bool {
			l.subscribing.Lock()
			defer l.subscribing.Unlock()
			return len(l.subscriptions) == 0
		})
	}
	if got := subscribers(); got != "["+channel+" 0]" {
		t.Errorf("subscribers: %s", got)
	}
	h.None(t)
}

func listenFollowsASlot(t *testing.T, cluster *servers.ClusterRedis) {
	h := newTeller()
	c := start(t, clusterOption(cluster), h)
	slot := slotsOf(t, cluster, 1)[0]
	channel, publish := shardOf(slot, t.Name())
	for range 2 {
		if err := c.Listen(t.Context(), uint16(slot), channel); err != nil {
			t.Fatal(err)
		}
		_, link := mustCall(t, c, publish)
		h.Want(t, pushed(link, channel, "news"))
		m := cluster.Migrate(slot, another(t, cluster, slot))
		m.MoveKeys()
		m.Finish()
		h.Want(t, told{Resumed: true}) // the subscription has ended, the link has not
	}
	if err := c.Listen(t.Context(), uint16(slot), channel); err != nil {
		t.Fatal(err)
	}
	_, link := mustCall(t, c, publish)
	h.Want(t, pushed(link, channel, "news"))
	h.None(t)
}
