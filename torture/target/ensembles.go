package target

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
)

// redlock is five servers. The clock of one of them can be wrong, or those of three.
func redlock(t testing.TB, on *ground, query string, config map[string]string) *Instance {
	one, two := on.clock(t), on.clock(t)
	var nodes []*servers.RedisNode
	var addrs []string
	for i := range 5 {
		o := &servers.RedisOptions{Config: config, Network: on.network}
		switch i {
		case 0:
			o.Clock = one
		case 1, 2:
			o.Clock = two
		}
		n := servers.RedisServer(t, o)
		nodes, addrs = append(nodes, n), append(addrs, n.Addr())
	}
	injections := nodeFaults(nodes)
	stores := func() []*servers.RedisNode { return nodes }
	maps.Copy(injections, redisOperator(stores))
	injections[Clock], injections[Clocks] = jump(one), jump(one, two)
	i := &Instance{
		Addrs: addrs, URL: at("redlock://", query), Injections: injections,
		version: redisVersion(nodes[0]), left: redisLeft(stores), stores: stores,
	}
	injections[Partition] = i.blind(members(nodes))
	return i
}

// ensemble is three ZooKeepers.
func ensemble(t testing.TB, on *ground) *Instance {
	o := &servers.ZooKeeperOptions{Network: on.network}
	if on.deposes {
		o.Tick, o.Config = deposedTick, map[string]string{"syncLimit": strconv.Itoa(deposedTicks)}
	}
	e := servers.NewZooKeeperEnsemble(t, o)
	i := &Instance{
		Addrs: e.Addrs(), URL: at("zk://", zooRoot), Injections: nodeFaults(e.Nodes()),
		version: zooKeeperVersion(e.Nodes()[0]), left: zooLeft(e.Addrs()),
	}
	maps.Copy(i.Injections, zooOperator(e.Addrs()))
	i.Injections[Partition] = i.cutOff(func(dice *rand.Rand) (few, many []*servers.Member) {
		return leaderAlone(members(e.Nodes()), e.Leader().Member(), dice)
	}, e.AwaitReady)
	i.Injections[Depose] = i.deposeZooKeeper(e)
	return i
}

// etcdCluster is three etcds.
func etcdCluster(t testing.TB, on *ground) *Instance {
	c := servers.EtcdCluster(t, 3, &servers.EtcdOptions{Network: on.network})
	i := &Instance{
		Addrs: c.Addrs(), URL: at("etcd://", ""), Injections: nodeFaults(c.Nodes()),
		version: etcdVersion(c.Nodes()[0]), left: etcdLeft(c.Nodes()[0]),
	}
	maps.Copy(i.Injections, map[Fault]Inject{
		Sessions: atAnyOf(c.Nodes(), revokeLeases), Wipe: atAnyOf(c.Nodes(), deleteKeys),
		Delete: atAnyOf(c.Nodes(), deleteOneLock),
		LeaderMove: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
			leader := c.Leader(t)
			others := slices.DeleteFunc(slices.Clone(c.Nodes()), func(n *servers.EtcdNode) bool { return n == leader })
			c.MoveLeader(t, others[dice.IntN(len(others))])
			enginekit.Pause(ctx, lasts/2)
			return nil
		},
		Partition: i.cutOff(func(dice *rand.Rand) (few, many []*servers.Member) {
			return leaderAlone(members(c.Nodes()), c.Leader(t).Member(), dice)
		}, func() { c.Leader(t) }),
		Depose: i.deposeEtcd(t, c),
	})
	return i
}
