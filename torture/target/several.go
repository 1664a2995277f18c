package target

import (
	"context"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/drivertest/servers"
)

// several are the engines with several servers. Those tell clients their own addresses, so there is no proxy between.
func several() []*Target {
	const unreplicated = "the replica that takes over had not heard of the lock"
	failovers := map[Fault]string{Failover: unreplicated, CutFailover: unreplicated}
	return []*Target{
		{
			Name: "redis-sentinel", Lease: 2 * time.Second, Heal: 10 * time.Second, Faults: []Fault{Kill, Stop, Failover, CutFailover},
			Broken: failovers,
			start:  func(t testing.TB) *Instance { return sentinel(t, "") },
		},
		{
			Name: "redis-sentinel-acked", Lease: 2 * time.Second, Heal: 10 * time.Second, Faults: []Fault{Kill, Stop, Failover, CutFailover},
			start: func(t testing.TB) *Instance { return sentinel(t, "?replicas=1") },
		},
		{
			Name: "redis-cluster", Lease: 2 * time.Second, Heal: 10 * time.Second, Faults: []Fault{Kill, Stop, Failover, CutFailover, SlotMove},
			Broken: failovers,
			start:  cluster,
		},
		{
			Name: "redlock", Lease: 2 * time.Second, Heal: 10 * time.Second, Faults: []Fault{Kill, Stop, Clock, NodeKill, NodeStop},
			start: redlock,
		},
		{
			Name: "zookeeper-3", Lease: 2 * time.Second, Heal: 12 * time.Second, Faults: []Fault{Kill, Stop, NodeKill, NodeStop},
			start: func(t testing.TB) *Instance {
				e := servers.NewZooKeeperEnsemble(t, nil)
				return &Instance{
					URL:   func(string) string { return "zk://" + e.Hosts() + "/torture" },
					Pokes: nodeFaults(e.Nodes()),
				}
			},
		},
		{
			Name: "etcd-3", Lease: 2 * time.Second, Heal: 12 * time.Second, Faults: []Fault{Kill, Stop, NodeKill, NodeStop},
			start: func(t testing.TB) *Instance {
				c := servers.EtcdCluster(t, 3, nil)
				return &Instance{
					URL:   func(string) string { return "etcd://" + strings.Join(c.Addrs(), ",") },
					Pokes: nodeFaults(c.Nodes()),
				}
			},
		},
	}
}

func sentinel(t testing.TB, query string) *Instance {
	s := servers.RedisSentinel(t, 1, nil)
	url := "redis+sentinel://" + strings.Join(s.Sentinels(), ",") + "/" + s.Name() + query
	return &Instance{
		URL: func(string) string { return url },
		Pokes: map[Fault]Poke{
			Failover: func(context.Context, *rand.Rand, time.Duration) error {
				s.KillPrimary()
				s.RestartDead()
				return nil
			},
			CutFailover: func(ctx context.Context, _ *rand.Rand, lasts time.Duration) error {
				if err := cutReplicas(ctx, s.Primary(), lasts); err != nil {
					return err
				}
				s.KillPrimary()
				s.RestartDead()
				return nil
			},
		},
	}
}

func cluster(t testing.TB) *Instance {
	c := servers.RedisCluster(t, 3, 1, nil)
	kill := func(slot int) {
		c.AwaitFailover(slot, c.KillOwner(slot))
		c.RestartDead()
	}
	return &Instance{
		URL: func(string) string { return "redis+cluster://" + strings.Join(c.Addrs(), ",") },
		Pokes: map[Fault]Poke{
			Failover: func(_ context.Context, dice *rand.Rand, _ time.Duration) error {
				kill(dice.IntN(slots))
				return nil
			},
			CutFailover: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
				slot := dice.IntN(slots)
				if err := cutReplicas(ctx, c.Owner(slot), lasts); err != nil {
					return err
				}
				kill(slot)
				return nil
			},
			SlotMove: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
				return moveSlot(ctx, c, dice, lasts)
			},
		},
	}
}

const slots = 16384 // of a Cluster

// cutReplicas keeps a primary's replicas from hearing of it for a while, though its clients do. That a replica stands still is
// not enough: what was sent meanwhile lies in its socket. So it is not let in again.
func cutReplicas(ctx context.Context, primary *servers.RedisNode, lasts time.Duration) error {
	for _, command := range [][]string{{"ACL", "SETUSER", "default", "-psync", "-sync"}, {"CLIENT", "KILL", "TYPE", "replica"}} {
		if _, err := primary.Do(context.WithoutCancel(ctx), command...); err != nil {
			return err
		}
	}
	wait(ctx, min(lasts, 3*time.Second)) // a replica that has been alone for longer may not take over
	info, err := primary.Info(context.WithoutCancel(ctx), "replication")
	if err == nil && info["connected_slaves"] != "0" {
		err = fmt.Errorf("the primary still has %s replicas, and was to have none", info["connected_slaves"])
	}
	return err
}

// moveSlot moves a slot that has keys to another primary. In the middle of that each of the two knows some of them.
func moveSlot(ctx context.Context, c *servers.ClusterRedis, dice *rand.Rand, lasts time.Duration) error {
	key, err := c.Owner(dice.IntN(slots)).Do(ctx, "RANDOMKEY")
	name, found := key.(string)
	if err != nil || !found {
		return err
	}
	slot := c.Slot(name)
	to := c.Owner(dice.IntN(slots))
	if to == c.Owner(slot) {
		return nil
	}
	m := c.Migrate(slot, to)
	wait(ctx, lasts/4)
	m.MoveKeys()
	wait(ctx, lasts/4)
	m.MoveKeys() // those that were made in between
	m.Finish()
	return nil
}

// redlock is five servers that keep what they were told. The clock of one of them can be wrong.
func redlock(t testing.TB) *Instance {
	clock := servers.NewClock(t)
	var nodes []*servers.RedisNode
	var addrs []string
	for i := range 5 {
		o := &servers.RedisOptions{Config: durably}
		if i == 0 {
			o.Clock = clock
		}
		n := servers.RedisServer(t, o)
		nodes, addrs = append(nodes, n), append(addrs, n.Addr())
	}
	pokes := nodeFaults(nodes)
	pokes[Clock] = jump(clock)
	return &Instance{URL: func(string) string { return "redlock://" + strings.Join(addrs, ",") }, Pokes: pokes}
}

// nodeFaults kill and stop one of several servers.
func nodeFaults[S Server](nodes []S) map[Fault]Poke {
	return map[Fault]Poke{
		NodeKill: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
			n := nodes[dice.IntN(len(nodes))]
			n.Kill()
			wait(ctx, lasts/2)
			n.Restart()
			return nil
		},
		NodeStop: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
			n := nodes[dice.IntN(len(nodes))]
			n.Stop()
			defer n.Cont()
			wait(ctx, lasts)
			return nil
		},
	}
}

func wait(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}
