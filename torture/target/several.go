package target

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/drivertest/servers"
)

// ensembleFaults can be done to every engine whose clients keep to the addresses of the servers that they are given, so that there is
// a proxy on each way.
func ensembleFaults(more ...Fault) []Fault {
	return slices.Concat([]Fault{Kill, Stop}, onLinks, []Fault{Starve, NoFiles, NodeKill, NodeStop, Partition}, more)
}

// replicaFaults can be done to every engine whose servers tell clients their own addresses, where no proxy is of use.
func replicaFaults(more ...Fault) []Fault {
	return append([]Fault{Kill, Stop, Starve, NoFiles, Sessions, Forget, Wipe, Delete, Failover, CutFailover, LeaderMove, Partition}, more...)
}

// several are the engines with several servers.
func several() []*Target {
	const unreplicated = "the replica that takes over had not heard of the lock"
	const unmissed = unreplicated + ", and its primary had not missed it for min-replicas-max-lag yet"
	failovers := map[Fault]string{
		Failover: unreplicated, CutFailover: unreplicated, Partition: unreplicated, Wipe: deleted, Delete: deleted,
	}
	sentinels := maps.Clone(failovers)
	sentinels[ClockFailover] = unreplicated
	sentinels[LeaderMove] = unreplicated // in a Cluster the old primary takes no writes until the new one has heard of all
	acked := map[Fault]string{Wipe: deleted, Delete: deleted, ClockFailover: tooEarlyThere}
	return []*Target{
		{
			Name: "redis-sentinel", Lease: 2 * time.Second, Heal: 10 * time.Second, Faults: replicaFaults(ClockFailover),
			Broken: sentinels,
			start:  func(t testing.TB, on *ground) *Instance { return sentinel(t, on, "", nil) },
		},
		{
			Name: "redis-sentinel-acked", Lease: 2 * time.Second, Heal: 10 * time.Second, Faults: replicaFaults(ClockFailover),
			Broken: acked,
			start:  func(t testing.TB, on *ground) *Instance { return sentinel(t, on, "?replicas=1", nil) },
		},
		{
			Name: "redis-sentinel-min", Lease: 2 * time.Second, Heal: 10 * time.Second, OnlyT2: true,
			Faults: []Fault{Kill, Stop, Failover, CutFailover, Partition},
			Broken: map[Fault]string{Failover: unmissed, CutFailover: unmissed, Partition: unmissed},
			start: func(t testing.TB, on *ground) *Instance {
				return sentinel(t, on, "", map[string]string{"min-replicas-to-write": "1", "min-replicas-max-lag": "2"})
			},
		},
		{
			Name: "redis-cluster", Lease: 2 * time.Second, Heal: 10 * time.Second, Faults: replicaFaults(SlotMove),
			Broken: failovers,
			start:  cluster,
		},
		{
			Name: "redlock", Lease: 2 * time.Second, Heal: 10 * time.Second, Faults: ensembleFaults(Sessions, Forget, Clock, Clocks, Wipe, Delete),
			Broken: map[Fault]string{Clocks: tooEarlyForMost, Wipe: deleted, Delete: deleted},
			start:  func(t testing.TB, on *ground) *Instance { return redlock(t, on, "", durably) },
		},
		{
			Name: "redlock-memory", Lease: 2 * time.Second, Heal: 10 * time.Second, OnlyT2: true, Faults: []Fault{Kill, Stop, NodeKill},
			start: func(t testing.TB, on *ground) *Instance { return redlock(t, on, "?longest-lease=3s", nil) },
		},
		{
			Name: "zookeeper-3", Lease: 2 * time.Second, Heal: 12 * time.Second,
			Faults: ensembleFaults(Sessions, Wipe, Delete),
			Broken: operated,
			start:  ensemble,
		},
		{
			Name: "etcd-3", Lease: 2 * time.Second, Heal: 12 * time.Second, Faults: ensembleFaults(Sessions, LeaderMove, Wipe, Delete),
			Broken: operated,
			start:  etcdCluster,
		},
	}
}

func sentinel(t testing.TB, on *ground, query string, config map[string]string) *Instance {
	clocks := []*servers.Clock{on.clock(t), on.clock(t)}
	s := servers.RedisSentinel(t, 1, &servers.RedisOptions{Network: on.network, Config: config, Clocks: clocks})
	i := &Instance{
		URL: at("redis+sentinel://"+strings.Join(s.Sentinels(), ",")+"/"+s.Name()+query, ""), version: redisVersion(s.Primary()),
		Pokes: map[Fault]Poke{
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
	maps.Copy(i.Pokes, redisOperator(func() []*servers.RedisNode { return []*servers.RedisNode{s.Primary()} }))
	i.Pokes[Partition] = i.cutOff(func(dice *rand.Rand) (few, many []*servers.Member) {
		few, many = leaderAlone(members(s.Nodes()), s.Primary().Member(), dice)
		sentinels := members(s.SentinelNodes())
		least := dice.IntN(2) // a minority of them may be on the primary's side
		return append(few, sentinels[:least]...), append(many, sentinels[least:]...)
	}, s.AwaitReady)
	return i
}

// failOverToWrongClock has a replica take over whose clock is wrong. The clocks are those of the nodes, in their order.
func failOverToWrongClock(s *servers.SentinelRedis, clocks []*servers.Clock) Poke {
	return func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
		by, primary := wrongBy(dice), s.Primary()
		defer set(clocks, 0)
		for i, n := range s.Nodes() {
			if n == primary {
				continue
			}
			clocks[i].Set(by)
			// A Redis looks at its clock when it runs a command. If it saw the jump only after its primary's death it would take that for
			// time without a primary, and not be chosen.
			if _, err := n.Do(ctx, "TIME"); err != nil {
				return err
			}
		}
		s.KillPrimary()
		wait(ctx, lasts)
		set(clocks, 0) // before it has replicas again, of which it would believe to have heard nothing for as long as its clock jumps
		s.RestartDead()
		return nil
	}
}

func cluster(t testing.TB, on *ground) *Instance {
	c := servers.RedisCluster(t, 3, 1, &servers.RedisOptions{Network: on.network})
	kill := func(slot int) {
		c.AwaitFailover(slot, c.KillOwner(slot))
		c.RestartDead()
	}
	i := &Instance{
		URL: at("redis+cluster://"+strings.Join(c.Addrs(), ","), ""), version: redisVersion(c.Owner(0)),
		Pokes: map[Fault]Poke{
			Failover: func(_ context.Context, dice *rand.Rand, _ time.Duration) error {
				kill(dice.IntN(slots))
				return nil
			},
			LeaderMove: func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
				c.Failover(dice.IntN(slots))
				c.AwaitReady()
				wait(ctx, lasts) // for a while nobody votes for this part of the slots again
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
	maps.Copy(i.Pokes, redisOperator(func() []*servers.RedisNode { // the primaries, who have these among their slots
		return []*servers.RedisNode{c.Owner(0), c.Owner(slots / 2), c.Owner(slots - 1)}
	}))
	i.Pokes[Partition] = i.cutOff(func(dice *rand.Rand) (few, many []*servers.Member) {
		return leaderAlone(members(c.Nodes()), c.Owner(dice.IntN(slots)).Member(), dice)
	}, c.AwaitReady)
	return i
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
	wait(ctx, lasts/4)
	m.MoveKeys()
	wait(ctx, lasts/4)
	m.MoveKeys() // those that were made in between
	m.Finish()
	return nil
}
