package target

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/interlock-go/interlock/drivertest/servers"
)

// What breaks exclusion, whatever a lock does.
const (
	forgets  = "the server comes back without the lock, and its holder has not been told yet"
	deleted  = "the lock is deleted while it is held"
	unlocks  = "a session ends with the server, and its holder learns of that by its next sign of life"
	killed   = "a session that is ended frees its locks, and its holder learns of that a moment later"
	tooEarly = "a lease ends early when the server's clock jumps ahead"
)

// clientFaults can be done to the clients of every single server.
func clientFaults(more ...Fault) []Fault {
	return append([]Fault{Kill, Stop, ServerStop, Cut, LateRequests, LoseReplies, Slow, Reset, Starve, NoFiles, ServerKill}, more...)
}

// alone are the engines with one server, or none.
func alone() []*Target {
	return []*Target{
		{
			Name: "file", Lease: time.Second, Heal: 2 * time.Second, Faults: []Fault{Kill, Stop, Starve, NoFiles, Wipe},
			Broken: map[Fault]string{Wipe: deleted},
			start:  file,
		},
		{
			Name: "redis", Lease: time.Second, Heal: 5 * time.Second, Faults: clientFaults(Sessions, Forget, Memory, Clock, Wipe),
			Broken: map[Fault]string{ServerKill: forgets, Clock: tooEarly, Wipe: deleted},
			start:  func(t testing.TB) *Instance { return redis(t, nil) },
		},
		{
			Name: "redis-aof", Lease: time.Second, Heal: 5 * time.Second, Faults: clientFaults(Sessions, Forget, Memory, Clock, Wipe),
			Broken: map[Fault]string{Clock: tooEarly, Wipe: deleted},
			start:  func(t testing.TB) *Instance { return redis(t, durably) },
		},
		{
			Name: "zookeeper", Lease: 2 * time.Second, Heal: 8 * time.Second, Faults: clientFaults(),
			start: func(t testing.TB) *Instance {
				s := servers.ZooKeeperServer(t, nil)
				return &Instance{Server: s, Addr: s.Addr(), URL: func(a string) string { return "zk://" + a + "/torture" }}
			},
		},
		{
			Name: "etcd", Lease: 2 * time.Second, Heal: 8 * time.Second, Faults: clientFaults(Sessions, Wipe),
			Broken: map[Fault]string{Sessions: killed, Wipe: deleted},
			start: func(t testing.TB) *Instance {
				s := servers.EtcdServer(t, nil)
				return &Instance{
					Server: s, Addr: s.Addr(), URL: func(a string) string { return "etcd://" + a },
					Pokes: map[Fault]Poke{Sessions: revokeLeases(s), Wipe: deleteKeys(s)},
				}
			},
		},
		{
			Name: "postgres", Lease: 2 * time.Second, Heal: 8 * time.Second, Faults: clientFaults(Sessions),
			Broken: map[Fault]string{ServerKill: unlocks, Sessions: killed},
			start: func(t testing.TB) *Instance {
				s := servers.PostgresServer(t, nil)
				url := func(a string) string { return "postgres://postgres@" + a + "/postgres?sslmode=disable" }
				return &Instance{
					Server: s, Addr: s.Addr(), URL: url,
					Pokes: map[Fault]Poke{Sessions: endPostgresSessions(url(s.Addr()))},
				}
			},
		},
		{
			Name: "mariadb", Lease: 2 * time.Second, Heal: 8 * time.Second, Faults: clientFaults(Sessions),
			Broken: map[Fault]string{ServerKill: unlocks, Sessions: killed},
			start: func(t testing.TB) *Instance {
				s := servers.MariaDBServer(t, nil)
				return &Instance{
					Server: s, Addr: s.Addr(), URL: func(a string) string { return "mysql://root@" + a + "/" + servers.MariaDBDatabase },
					Pokes: map[Fault]Poke{Sessions: endMariaDBSessions("root@tcp(" + s.Addr() + ")/")},
				}
			},
		},
	}
}

// file is a folder; its locks are deleted one by one, as a job that cleans up does.
func file(t testing.TB) *Instance {
	dir := t.TempDir()
	return &Instance{
		URL: func(string) string { return "file://" + dir },
		Pokes: map[Fault]Poke{Wipe: func(context.Context, *rand.Rand, time.Duration) error {
			found, err := filepath.Glob(filepath.Join(dir, "*"))
			if err != nil {
				return err
			}
			for _, path := range found {
				if err := os.Remove(path); err != nil && !os.IsNotExist(err) {
					return err
				}
			}
			return nil
		}},
	}
}

// durably has a Redis keep what it was told, also over kill -9.
var durably = map[string]string{"appendonly": "yes", "appendfsync": "always"}

func redis(t testing.TB, config map[string]string) *Instance {
	clock := servers.NewClock(t)
	s := servers.RedisServer(t, &servers.RedisOptions{Config: config, Clock: clock})
	do := func(args ...string) Poke {
		return func(ctx context.Context, _ *rand.Rand, _ time.Duration) error {
			_, err := s.Do(ctx, args...)
			return err
		}
	}
	return &Instance{
		Server: s, Addr: s.Addr(), URL: func(a string) string { return "redis://" + a },
		Pokes: map[Fault]Poke{
			Forget: do("SCRIPT", "FLUSH"), Wipe: do("FLUSHALL"), Memory: fillMemory(s), Clock: jump(clock),
			Sessions: func(ctx context.Context, dice *rand.Rand, _ time.Duration) error {
				_, err := s.Do(ctx, "CLIENT", "KILL", "TYPE", []string{"normal", "pubsub"}[dice.IntN(2)])
				return err
			},
		},
	}
}

// fillMemory has a Redis refuse for a while whatever needs memory.
func fillMemory(s *servers.RedisNode) Poke {
	return func(ctx context.Context, _ *rand.Rand, lasts time.Duration) error {
		set := func(bytes string) error {
			_, err := s.Do(context.WithoutCancel(ctx), "CONFIG", "SET", "maxmemory-policy", "noeviction", "maxmemory", bytes)
			return err
		}
		if err := set("1"); err != nil {
			return err
		}
		wait(ctx, lasts)
		return set("0")
	}
}

// jump sets a clock ahead or back, by some leases or by an hour, and right again.
func jump(clock *servers.Clock) Poke {
	return func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
		by := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, time.Hour}[dice.IntN(4)]
		if dice.IntN(2) == 0 {
			by = -by
		}
		clock.Set(by)
		wait(ctx, lasts)
		clock.Set(0)
		return nil
	}
}
