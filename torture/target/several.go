package target

import (
	"context"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/drivertest/servers"
)

// several are the engines with several servers. Those tell clients their own addresses, so there is no proxy between.
func several() []*Target {
	const unreplicated = "the replica that takes over had not heard of the lock"
	failover := func(f func(ctx context.Context) error) map[Fault]func(context.Context, *rand.Rand, time.Duration) error {
		return map[Fault]func(context.Context, *rand.Rand, time.Duration) error{
			Failover: func(ctx context.Context, _ *rand.Rand, _ time.Duration) error { return f(ctx) },
		}
	}
	sentinel := func(t testing.TB, replicas int, query string) *Instance {
		s := servers.RedisSentinel(t, replicas, nil)
		url := "redis+sentinel://" + strings.Join(s.Sentinels(), ",") + "/" + s.Name() + query
		return &Instance{
			URL: func(string) string { return url },
			Pokes: failover(func(context.Context) error {
				s.KillPrimary()
				s.RestartDead()
				return nil
			}),
		}
	}
	return []*Target{
		{
			Name: "redis-sentinel", Lease: 2 * time.Second, Heal: 10 * time.Second, Faults: []Fault{Kill, Stop, Failover},
			Broken: map[Fault]string{Failover: unreplicated},
			start:  func(t testing.TB) *Instance { return sentinel(t, 1, "") },
		},
		{
			Name: "redis-sentinel-acked", Lease: 2 * time.Second, Heal: 10 * time.Second, Faults: []Fault{Kill, Stop, Failover},
			start: func(t testing.TB) *Instance { return sentinel(t, 1, "?replicas=1") },
		},
		{
			Name: "redis-cluster", Lease: 2 * time.Second, Heal: 10 * time.Second, Faults: []Fault{Kill, Stop, Failover},
			Broken: map[Fault]string{Failover: unreplicated},
			start: func(t testing.TB) *Instance {
				c := servers.RedisCluster(t, 3, 1, nil)
				return &Instance{
					URL: func(string) string { return "redis+cluster://" + strings.Join(c.Addrs(), ",") },
					Pokes: map[Fault]func(context.Context, *rand.Rand, time.Duration) error{
						Failover: func(_ context.Context, dice *rand.Rand, _ time.Duration) error {
							slot := dice.IntN(16384)
							c.AwaitFailover(slot, c.KillOwner(slot))
							c.RestartDead()
							return nil
						},
					},
				}
			},
		},
		{
			Name: "redlock", Lease: 2 * time.Second, Heal: 10 * time.Second, Faults: []Fault{Kill, Stop, NodeKill, NodeStop},
			start: redlock,
		},
	}
}

// redlock is five servers that keep what they were told.
func redlock(t testing.TB) *Instance {
	var nodes []*servers.RedisNode
	var addrs []string
	for range 5 {
		n := servers.RedisServer(t, &servers.RedisOptions{Config: map[string]string{"appendonly": "yes", "appendfsync": "always"}})
		nodes, addrs = append(nodes, n), append(addrs, n.Addr())
	}
	return &Instance{
		URL: func(string) string { return "redlock://" + strings.Join(addrs, ",") },
		Pokes: map[Fault]func(context.Context, *rand.Rand, time.Duration) error{
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
