package target

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
)

// ensembleFaults can be done to every engine with several servers.
func ensembleFaults(more ...Fault) []Fault {
	return slices.Concat([]Fault{Kill, Stop}, onLinks, []Fault{Starve, NoFiles, NodeKill, NodeStop, Partition}, more)
}

// replicaFaults can be done to every Redis with replicas.
func replicaFaults(more ...Fault) []Fault {
	return ensembleFaults(
		append([]Fault{Sessions, Forget, Wipe, Delete, Failover, CutFailover, LeaderMove}, more...)...)
}

// several are the engines with several servers.
func several() []*Target {
	const unreplicated = "the replica that takes over had not heard of the lock"
	const unmissed = unreplicated + ", and its primary had not missed it for min-replicas-max-lag yet"
	const served = "the primary that had stood still served on until it heard that it was replaced"
	const forgotten = "a primary that writes nothing to disk came back before anybody missed it, with nothing, and " +
		"its replica took that over"
	failovers := map[Fault]string{
		Failover: unreplicated, CutFailover: unreplicated, Partition: unreplicated, NodeStop: served,
		NodeKill: forgotten, Wipe: deleted, Delete: deleted,
	}
	sentinels := maps.Clone(failovers)
	sentinels[ClockFailover] = unreplicated
	// in a Cluster the old primary takes no writes until the new one has heard of all
	sentinels[LeaderMove] = unreplicated
	clusters := maps.Clone(failovers)
	clusters[Clock] = tooEarly
	acked := map[Fault]string{NodeKill: forgotten, Wipe: deleted, Delete: deleted, ClockFailover: tooEarlyThere}
	// A replica takes over three seconds after it is needed. Where it has not heard of a new holder it takes the one
	// before for the holder, as long as that one's lease runs. So leases are 5 seconds there, and no longer.
	return []*Target{
		{
			Name: "redis-sentinel", Lease: 2 * time.Second, Heal: 10 * time.Second,
			Faults: replicaFaults(ClockFailover), Tells: true, Broken: sentinels,
			Leases: map[Fault]time.Duration{CutFailover: 5 * time.Second, ClockFailover: 6 * time.Second},
			start:  func(t testing.TB, on *ground) *Instance { return sentinel(t, on, "", nil) },
		},
		{
			Name: "redis-sentinel-acked", Lease: 2 * time.Second, Heal: 10 * time.Second,
			Faults: replicaFaults(ClockFailover), Tells: true,
			Broken: acked,
			start:  func(t testing.TB, on *ground) *Instance { return sentinel(t, on, "?replicas=1", nil) },
		},
		{
			Name: "redis-sentinel-min", Lease: 2 * time.Second, Heal: 10 * time.Second, OnlyT2: true, Tells: true,
			Faults: []Fault{Kill, Stop, Failover, CutFailover, Partition},
			Broken: map[Fault]string{Failover: unmissed, CutFailover: unmissed, Partition: unmissed},
			start: func(t testing.TB, on *ground) *Instance {
				return sentinel(t, on, "", map[string]string{"min-replicas-to-write": "1", "min-replicas-max-lag": "2"})
			},
		},
		{
			Name: "redis-cluster", Lease: 2 * time.Second, Heal: 10 * time.Second,
			Faults: replicaFaults(SlotMove, Clock), Tells: true, Broken: clusters,
			Leases: map[Fault]time.Duration{CutFailover: 5 * time.Second, Partition: 5 * time.Second},
			start:  cluster,
		},
		{
			Name: "redlock", Lease: 2 * time.Second, Heal: 10 * time.Second, Syncs: true,
			Faults: ensembleFaults(Sessions, Forget, Clock, Clocks, Wipe, Delete),
			Broken: map[Fault]string{
				Clock: tooEarlyForOne, Clocks: tooEarlyForMost, Wipe: deleted, Delete: deleted,
			},
			Leases: map[Fault]time.Duration{Clocks: 6 * time.Second},
			start:  func(t testing.TB, on *ground) *Instance { return redlock(t, on, "", durably) },
		},
		{
			Name: "redlock-memory", Lease: 2 * time.Second, Heal: 10 * time.Second, OnlyT2: true,
			Faults: []Fault{Kill, Stop, NodeKill},
			start:  func(t testing.TB, on *ground) *Instance { return redlock(t, on, "?longest-lease=3s", nil) },
		},
		{
			Name: "zookeeper-3", Lease: 2 * time.Second, Heal: 12 * time.Second,
			Faults: ensembleFaults(Depose, Sessions, Wipe, Delete),
			Broken: operated,
			Leases: map[Fault]time.Duration{Depose: 2 * deposedTick},
			start:  ensemble,
		},
		{
			Name: "etcd-3", Lease: 2 * time.Second, Heal: 12 * time.Second, Syncs: true,
			Faults: ensembleFaults(Depose, Sessions, LeaderMove, Wipe, Delete),
			Broken: map[Fault]string{Sessions: killed, Wipe: deleted, Delete: deleted, NodeStop: revokes},
			Leases: map[Fault]time.Duration{Depose: deposedLease},
			start:  etcdCluster,
		},
	}
}

func sentinel(t testing.TB, on *ground, query string, config map[string]string) *Instance {
	clocks := []*servers.Clock{on.clock(t), on.clock(t)}
	s := servers.RedisSentinel(t, 1, &servers.RedisOptions{Network: on.network, Config: config, Clocks: clocks})
	stores := func() []*servers.RedisNode { return []*servers.RedisNode{s.Primary()} }
	i := &Instance{
		left: redisLeft(stores), stores: stores, Places: slices.Concat(s.Sentinels(), s.Addrs()),
		URL:     at("redis+sentinel://"+strings.Join(s.Sentinels(), ",")+"/"+s.Name()+query, ""),
		version: redisVersion(s.Primary()),
		Injections: map[Fault]Inject{
			Failover: func(context.Context, *rand.Rand, time.Duration) error {
				s.KillPrimary()
				s.RestartDead()
				return nil
			},
			LeaderMove: func(context.Context, *rand.Rand, time.Duration) error {
				s.Failover()
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
			ClockFailover: failOverToWrongClock(s, clocks),
		},
	}
	maps.Copy(i.Injections, redisOperator(stores))
	maps.Copy(i.Injections, replicaNodeFaults(s.Nodes(), s.AwaitReady))
	i.Injections[Partition] = func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
		primary := s.Primary()
		choose := func(dice *rand.Rand) (few, many []*servers.Member) {
			few, many = leaderAlone(members(s.Nodes()), primary.Member(), dice)
			sentinels := members(s.SentinelNodes())
			least := dice.IntN(2) // a minority of them may be on the primary's side
			return append(few, sentinels[:least]...), append(many, sentinels[least:]...)
		}
		return i.cutOffUnheard(primary, s.Nodes(), choose, s.AwaitReady)(ctx, dice, lasts)
	}
	return i
}

// failOverToWrongClock has a replica take over whose clock is wrong. The clocks are those of the nodes, in their order.
func failOverToWrongClock(s *servers.SentinelRedis, clocks []*servers.Clock) Inject {
	return func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
		by, primary := wrongBy(dice), s.Primary()
		defer set(clocks, 0)
		for i, n := range s.Nodes() {
			if n == primary {
				continue
			}
			clocks[i].Set(by)
			// A Redis looks at its clock when it runs a command. If it saw the jump only after its primary's death it
			// would take that for time without a primary, and not be chosen.
			if _, err := n.Do(ctx, "TIME"); err != nil {
				return err
			}
		}
		s.KillPrimary()
		enginekit.Pause(ctx, min(lasts, time.Second)) // it has seen by then which leases are over
		// before it has replicas again, of which it would believe to have heard nothing for as long as its clock jumps
		set(clocks, 0)
		s.RestartDead()
		return nil
	}
}

func cluster(t testing.TB, on *ground) *Instance {
	var clocks []*servers.Clock
	for range 6 {
		clocks = append(clocks, on.clock(t))
	}
	c := servers.RedisCluster(t, 3, 1, &servers.RedisOptions{Network: on.network, Clocks: clocks})
	kill := func(slot int) {
		c.AwaitFailover(slot, c.KillOwner(slot))
		c.RestartDead()
	}
	stores := func() []*servers.RedisNode { return primaries(c) }
	i := &Instance{
		left: redisLeft(stores), stores: stores, Places: c.Addrs(),
		URL: at("redis+cluster://"+strings.Join(c.Addrs(), ","), ""), version: redisVersion(c.Owner(0)),
		Injections: map[Fault]Inject{
			Failover: func(ctx context.Context, dice *rand.Rand, _ time.Duration) error {
				slot, err := lockedSlot(ctx, c, dice)
				if err == nil {
					kill(slot)
				}
				return err
			},
			LeaderMove: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
				c.Failover(dice.IntN(slots))
				c.AwaitReady()
				enginekit.Pause(ctx, lasts) // for a while nobody votes for this part of the slots again
				return nil
			},
			CutFailover: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
				slot, err := lockedSlot(ctx, c, dice)
				if err == nil {
					err = cutReplicas(ctx, c.Owner(slot), lasts)
				}
				if err == nil {
					kill(slot)
				}
				return err
			},
			Clock: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
				slot, err := lockedSlot(ctx, c, dice)
				if err == nil {
					err = jump(clocks[slices.Index(c.Nodes(), c.Owner(slot))])(ctx, dice, lasts)
					c.AwaitReady() // a node takes a jump ahead for the silence of all others
				}
				return err
			},
			SlotMove: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
				return moveSlot(ctx, c, dice, lasts)
			},
		},
	}
	maps.Copy(i.Injections, redisOperator(stores))
	maps.Copy(i.Injections, replicaNodeFaults(c.Nodes(), c.AwaitReady))
	i.Injections[Partition] = func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
		slot, err := lockedSlot(ctx, c, dice)
		if err != nil {
			return err
		}
		primary := c.Owner(slot)
		choose := func(dice *rand.Rand) (few, many []*servers.Member) {
			return leaderAlone(members(c.Nodes()), primary.Member(), dice)
		}
		return i.cutOffUnheard(primary, c.Nodes(), choose, c.AwaitReady)(ctx, dice, lasts)
	}
	return i
}

const slots = 16384 // of a Cluster

// primaries are the three, who have these among their slots.
func primaries(c *servers.ClusterRedis) []*servers.RedisNode {
	return []*servers.RedisNode{c.Owner(0), c.Owner(slots / 2), c.Owner(slots - 1)}
}

// lockedSlot draws one of the slots of the mutexes that somebody has or waits for: what befalls another part of the
// Cluster is nothing to them. Without any it is some slot.
func lockedSlot(ctx context.Context, c *servers.ClusterRedis, dice *rand.Rand) (int, error) {
	keys, _, err := mutexKeys(ctx, primaries(c))
	if err != nil || len(keys) == 0 {
		return dice.IntN(slots), err
	}
	return c.Slot(keys[dice.IntN(len(keys))]), nil
}

// cutReplicas keeps a primary's replicas from hearing of it for a while, though its clients do. That a replica stands
// still is not enough: what was sent meanwhile lies in its socket. So it is not let in again.
func cutReplicas(ctx context.Context, primary *servers.RedisNode, lasts time.Duration) error {
	for _, command := range [][]string{
		{"ACL", "SETUSER", "default", "-psync", "-sync"}, {"CLIENT", "KILL", "TYPE", "replica"},
	} {
		if _, err := primary.Do(context.WithoutCancel(ctx), command...); err != nil {
			return err
		}
	}
	enginekit.Pause(ctx, min(lasts, 3*time.Second)) // a replica that has been alone for longer may not take over
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
	if err == nil && !found {
		err = ErrNothing
	}
	if err != nil {
		return err
	}
	slot := c.Slot(name)
	to := c.Owner(dice.IntN(slots))
	if to == c.Owner(slot) {
		return ErrNothing
	}
	m := c.Migrate(slot, to)
	enginekit.Pause(ctx, lasts/4)
	m.MoveKeys()
	enginekit.Pause(ctx, lasts/4)
	m.MoveKeys() // those that were made in between
	m.Finish()
	return nil
}

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
