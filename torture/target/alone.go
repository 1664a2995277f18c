package target

import (
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/servers"
)

// What breaks exclusion, whatever a lock does.
const (
	forgets         = "the server comes back without the lock, and its holder has not been told yet"
	deleted         = "the lock is deleted while it is held"
	unlocks         = "a session ends with the server, and its holder learns of that by its next sign of life"
	killed          = "a session that is ended frees its locks, and its holder learns of that a moment later"
	evicted         = "the server throws a lock away while it is held"
	lastPart        = "the server comes back without the last second or two, and the holder has not been told yet"
	tooEarlyForOne  = "a lease ends early on one server when its clock jumps ahead, and its holder had no vote to spare"
	tooEarlyForMost = "leases end early on most of the servers when their clocks jump ahead"
	tooEarlyThere   = "a lease ends early when a replica takes over whose clock is ahead, or behind and set right"
	tooEarlyIdle    = "a session that is idle may end early when the server's clock jumps ahead"
	tooEarly        = "a lease ends early when the server's clock jumps ahead"
)

// revokes is what etcd does before 3.4.31 and 3.5.13 (etcd #15247), and later where it comes from a
// disk: see docs/limits/etcd.md.
const revokes = "a leader that stood still revokes sessions that were renewed with its successor meanwhile"

// operated is what an operator breaks where a session is behind the holds.
var operated = map[Fault]string{Sessions: killed, Wipe: deleted, Delete: deleted}

// clientFaults can be done to the clients of every single server.
func clientFaults(more ...Fault) []Fault {
	return slices.Concat([]Fault{Kill, Stop, ServerStop}, onLinks, []Fault{Starve, NoFiles, ServerKill}, more)
}

// alone are the engines with one server, or none.
func alone() []*Target {
	return []*Target{
		{
			Name: "memory", Lease: time.Second, Heal: 2 * time.Second, Faults: []Fault{Kill, Stop, Starve},
			Inside: true,
			start:  func(testing.TB, *ground) *Instance { return &Instance{URL: at("mem://torture", "")} },
		},
		{
			Name: "file", Lease: time.Second, Heal: 2 * time.Second,
			Faults: []Fault{Kill, Stop, Starve, NoFiles, DiskFull, Wipe},
			Broken: map[Fault]string{Wipe: deleted},
			start:  file,
		},
		{
			Name: "redis", Lease: time.Second, Heal: 5 * time.Second,
			Faults: clientFaults(Sessions, Forget, Memory, Evict, Clock, Wipe, Delete),
			Broken: map[Fault]string{
				ServerKill: forgets, Clock: tooEarly, Evict: evicted, Wipe: deleted, Delete: deleted,
			},
			start: func(t testing.TB, on *ground) *Instance { return redis(t, on, nil) },
		},
		{
			Name: "redis-aof", Lease: time.Second, Heal: 5 * time.Second, Syncs: true,
			Faults: clientFaults(DiskFull, Sessions, Forget, Memory, Evict, Clock, Wipe, Delete),
			Broken: map[Fault]string{Clock: tooEarly, Evict: evicted, Wipe: deleted, Delete: deleted},
			start:  func(t testing.TB, on *ground) *Instance { return redis(t, on, durably) },
		},
		{
			Name: "redis-everysec", Lease: time.Second, Heal: 5 * time.Second, OnlyT2: true,
			Faults: []Fault{Kill, Stop, ServerKill, PowerCut},
			Broken: map[Fault]string{ServerKill: lastPart, PowerCut: lastPart},
			start:  func(t testing.TB, on *ground) *Instance { return redis(t, on, eachSecond) },
		},
		{
			Name: "zookeeper", Lease: 2 * time.Second, Heal: 8 * time.Second,
			Faults: clientFaults(DiskFull, Sessions, Clock, Wipe, Delete),
			Broken: operated,
			start: func(t testing.TB, on *ground) *Instance {
				clock := on.clock(t)
				s := servers.ZooKeeperServer(t, &servers.ZooKeeperOptions{Disk: on.disk, Clock: clock})
				addrs := []string{s.Addr()}
				injections := zooOperator(addrs)
				injections[DiskFull], injections[Clock] = fill(on.disk, s, nil), jump(clock)
				return &Instance{
					Server: s, Addrs: addrs, URL: at("zk://", zooRoot), Injections: injections,
					version: zooKeeperVersion(s), left: zooLeft(addrs),
				}
			},
		},
		{
			Name: "etcd", Lease: 2 * time.Second, Heal: 8 * time.Second, Syncs: true,
			Faults: clientFaults(DiskFull, Sessions, Wipe, Delete),
			Broken: operated,
			start: func(t testing.TB, on *ground) *Instance {
				s := servers.EtcdServer(t, &servers.EtcdOptions{Disk: on.disk})
				return &Instance{
					Server: s, Addrs: []string{s.Addr()}, URL: at("etcd://", ""),
					Injections: map[Fault]Inject{
						Sessions: revokeLeases(s), Wipe: deleteKeys(s), Delete: deleteOneLock(s),
						DiskFull: fill(on.disk, s, nil),
					},
					version: etcdVersion(s), left: etcdLeft(s),
				}
			},
		},
		{
			Name: "postgres", Lease: 2 * time.Second, Heal: 8 * time.Second, Connected: true, Keeps: 30 * time.Second,
			Faults: clientFaults(DiskFull, Sessions, Clock),
			Broken: map[Fault]string{ServerKill: unlocks, Sessions: killed, DiskFull: unlocks, Clock: tooEarlyIdle},
			Untold: []Fault{ServerKill, Sessions, DiskFull, Clock},
			Leases: map[Fault]time.Duration{DiskFull: 6 * time.Second},
			start: func(t testing.TB, on *ground) *Instance {
				clock := on.clock(t)
				s := servers.PostgresServer(t, &servers.PostgresOptions{Disk: on.disk, Clock: clock})
				addrs, url := []string{s.Addr()}, at("postgres://postgres@", "/postgres?sslmode=disable")
				direct := url(addrs)
				return &Instance{
					Server: s, Addrs: addrs, URL: url,
					Injections: map[Fault]Inject{
						Sessions: endPostgresSessions(direct), DiskFull: fill(on.disk, s, writeAhead(direct)),
						Clock: jump(clock),
					},
					version: sqlVersion("PostgreSQL", "pgx", direct, "SHOW server_version"), left: postgresLeft(direct),
				}
			},
		},
		{
			Name: "mariadb", Lease: 2 * time.Second, Heal: 8 * time.Second, Connected: true, Syncs: true,
			Faults: clientFaults(DiskFull, Sessions, Clock),
			Broken: map[Fault]string{ServerKill: unlocks, Sessions: killed}, Untold: []Fault{ServerKill, Sessions},
			start: func(t testing.TB, on *ground) *Instance {
				clock := on.clock(t)
				s := servers.MariaDBServer(t, &servers.MariaDBOptions{Disk: on.disk, Clock: clock})
				dsn := "root@tcp(" + s.Addr() + ")/"
				return &Instance{
					Server: s, Addrs: []string{s.Addr()}, URL: at("mysql://root@", "/"+servers.MariaDBDatabase),
					Injections: map[Fault]Inject{
						Sessions: endMariaDBSessions(dsn),
						DiskFull: fill(on.disk, s, storeJunk(dsn+servers.MariaDBDatabase)), Clock: jump(clock),
					},
					version: sqlVersion("MariaDB", "mysql", dsn, "SELECT version()"),
					left:    mariaDBLeft(dsn + servers.MariaDBDatabase),
				}
			},
		},
	}
}

// file is a folder; its locks are deleted one by one, as a job that cleans up does.
func file(t testing.TB, on *ground) *Instance {
	var dir string
	if on.disk != nil {
		dir = on.disk.Folder(t)
	} else {
		dir = t.TempDir()
	}
	return &Instance{
		URL: at("file://"+dir, ""),
		Injections: map[Fault]Inject{
			DiskFull: fill(on.disk, nil, nil),
			Wipe: func(context.Context, *rand.Rand, time.Duration) error {
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
			},
		},
	}
}

// durably has a Redis keep what it was told, also over kill -9.
var durably = map[string]string{"appendonly": "yes", "appendfsync": "always"}

func redis(t testing.TB, on *ground, config map[string]string) *Instance {
	clock := on.clock(t)
	s := servers.RedisServer(t, &servers.RedisOptions{Config: config, Clock: clock, Disk: on.disk})
	stores := func() []*servers.RedisNode { return []*servers.RedisNode{s} }
	injections := redisOperator(stores)
	maps.Copy(injections,
		map[Fault]Inject{
			Memory: fillMemory(s), Evict: evict(s), Clock: jump(clock), DiskFull: fill(on.disk, s, nil),
			PowerCut: cutPower(s),
		})
	return &Instance{
		Server: s, Addrs: []string{s.Addr()}, URL: at("redis://", ""), Injections: injections, version: redisVersion(s),
		left: redisLeft(stores), stores: stores,
	}
}

// killClients has a Redis close all connections that are subscribed to nothing, or all that are, or one.
func killClients(s *servers.RedisNode) Inject {
	return func(ctx context.Context, dice *rand.Rand, _ time.Duration) error {
		if kind := dice.IntN(3); kind > 0 {
			_, err := s.Do(ctx, "CLIENT", "KILL", "TYPE", []string{"normal", "pubsub"}[kind-1])
			return err
		}
		list, err := s.Do(ctx, "CLIENT", "LIST")
		if err != nil {
			return err
		}
		text, _ := list.(string)
		lines := strings.Split(strings.TrimSpace(text), "\n")
		id, _, _ := strings.Cut(strings.TrimPrefix(lines[dice.IntN(len(lines))], "id="), " ")
		_, err = s.Do(ctx, "CLIENT", "KILL", "ID", id) // that answers how many it were
		return err
	}
}

// jump sets clocks ahead or back, all alike, by some leases or by an hour, and right again.
func jump(clocks ...*servers.Clock) Inject {
	return func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error {
		set(clocks, wrongBy(dice))
		enginekit.Pause(ctx, lasts)
		set(clocks, 0)
		return nil
	}
}

// wrongBy is some leases or an hour, ahead or back.
func wrongBy(dice *rand.Rand) time.Duration {
	by := []time.Duration{time.Second, 2 * time.Second, 4 * time.Second, time.Hour}[dice.IntN(4)]
	if dice.IntN(2) == 0 {
		return -by
	}
	return by
}

func set(clocks []*servers.Clock, ahead time.Duration) {
	for _, c := range clocks {
		c.Set(ahead)
	}
}
