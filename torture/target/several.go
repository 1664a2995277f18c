package target

import (
	"context"
	"maps"
	"math/rand/v2"
	"slices"
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
