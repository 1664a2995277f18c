// Package target starts the engines that a run can torture, and says what each has promised to keep under which fault.
package target

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/drivertest/servers"
)

// Fault is what a nemesis does.
type Fault string

// The faults, with their numbers among the nemeses N0 to N20.
const (
	None         Fault = "none"          // N0
	Kill         Fault = "kill"          // N1: kill -9 of a client, which is started again
	Stop         Fault = "stop"          // N2: SIGSTOP of a client for half to three leases
	ServerKill   Fault = "server-kill"   // N3: kill -9 of the server, and a new start
	ServerStop   Fault = "server-stop"   // N4: SIGSTOP of the server
	Cut          Fault = "cut"           // N6: nothing passes between a client and the server
	LateRequests Fault = "late-requests" // N7: what a client sends arrives when the fault is over
	LoseReplies  Fault = "lose-replies"  // N8: requests arrive, answers are lost
	Slow         Fault = "slow"          // N11: up to one and a half leases on the way to the server and to the register
	Reset        Fault = "reset"         // N12: connections are reset, again and again
	Forget       Fault = "forget"        // N13: the server forgets its scripts (Redis)
	Wipe         Fault = "wipe"          // N16: an operator deletes everything in the engine
	Failover     Fault = "failover"      // N5: kill -9 of a primary; a replica takes over, and it comes back as one
	NodeKill     Fault = "node-kill"     // N3: kill -9 of one of several servers, which is started again
	NodeStop     Fault = "node-stop"     // N4: SIGSTOP of one of several servers
)

// All lists the faults.
func All() []Fault {
	return []Fault{None, Kill, Stop, ServerKill, ServerStop, Cut, LateRequests, LoseReplies, Slow, Reset, Forget, Wipe, Failover, NodeKill, NodeStop}
}

// Target is one engine with one set-up.
type Target struct {
	Name  string
	Lease time.Duration
	// Faults are those that can be done to it.
	Faults []Fault
	// Broken are those of Faults under which two processes may hold a lock at once, with the reason.
	Broken map[Fault]string
	// Heal is for how long after the end of a fault nobody may get a lock.
	Heal  time.Duration
	start func(t testing.TB) *Instance
}

// Instance is a target that was started.
type Instance struct {
	Server Server                   // nil if it has none
	Addr   string                   // of the server
	URL    func(addr string) string // for a client that comes through a proxy at addr
	// Pokes are the faults that are this engine's own. They last as long as they are told to, or end at once, and have healed
	// when they return.
	Pokes map[Fault]func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error
}

// Server is one that can be treated badly.
type Server interface {
	Kill()
	Restart()
	Stop()
	Cont()
}

// Start starts the target for t.
func (g *Target) Start(t testing.TB) *Instance { return g.start(t) }

// Can reports whether the fault can be done to the target.
func (g *Target) Can(f Fault) bool { return f == None || slices.Contains(g.Faults, f) }

// Find returns the target of that name.
func Find(name string) (*Target, error) {
	names := make([]string, 0, len(targets()))
	for _, g := range targets() {
		if g.Name == name {
			return g, nil
		}
		names = append(names, g.Name)
	}
	return nil, fmt.Errorf("there is no engine %q: choose from %s", name, strings.Join(names, ", "))
}

// Targets returns all.
func Targets() []*Target { return targets() }

// clientFaults can be done to the clients of every server.
func clientFaults(more ...Fault) []Fault {
	return append([]Fault{Kill, Stop, ServerStop, Cut, LateRequests, LoseReplies, Slow, Reset, ServerKill}, more...)
}

func targets() []*Target { return append(alone(), several()...) }

// alone are the engines with one server, or none.
func alone() []*Target {
	const forgets = "the server comes back without the lock, and its holder has not been told yet"
	return []*Target{
		{
			Name: "file", Lease: time.Second, Heal: 2 * time.Second, Faults: []Fault{Kill, Stop},
			start: func(t testing.TB) *Instance {
				dir := t.TempDir()
				return &Instance{URL: func(string) string { return "file://" + dir }}
			},
		},
		{
			Name: "redis", Lease: time.Second, Heal: 5 * time.Second, Faults: clientFaults(Forget, Wipe),
			Broken: map[Fault]string{ServerKill: forgets, Wipe: "the lock is deleted while it is held"},
			start:  func(t testing.TB) *Instance { return redis(servers.RedisServer(t, nil)) },
		},
		{
			Name: "redis-aof", Lease: time.Second, Heal: 5 * time.Second, Faults: clientFaults(Forget, Wipe),
			Broken: map[Fault]string{Wipe: "the lock is deleted while it is held"},
			start: func(t testing.TB) *Instance {
				return redis(servers.RedisServer(t, &servers.RedisOptions{Config: map[string]string{"appendonly": "yes", "appendfsync": "always"}}))
			},
		},
		{
			Name: "zookeeper", Lease: 2 * time.Second, Heal: 8 * time.Second, Faults: clientFaults(),
			start: func(t testing.TB) *Instance {
				s := servers.ZooKeeperServer(t, nil)
				return &Instance{Server: s, Addr: s.Addr(), URL: func(a string) string { return "zk://" + a + "/torture" }}
			},
		},
		{
			Name: "etcd", Lease: 2 * time.Second, Heal: 8 * time.Second, Faults: clientFaults(),
			start: func(t testing.TB) *Instance {
				s := servers.EtcdServer(t, nil)
				return &Instance{Server: s, Addr: s.Addr(), URL: func(a string) string { return "etcd://" + a }}
			},
		},
		{
			Name: "postgres", Lease: 2 * time.Second, Heal: 8 * time.Second, Faults: clientFaults(),
			Broken: map[Fault]string{ServerKill: "a session ends with the server, and its holder learns of that by its next sign of life"},
			start: func(t testing.TB) *Instance {
				s := servers.PostgresServer(t, nil)
				return &Instance{Server: s, Addr: s.Addr(), URL: func(a string) string { return "postgres://postgres@" + a + "/postgres?sslmode=disable" }}
			},
		},
		{
			Name: "mariadb", Lease: 2 * time.Second, Heal: 8 * time.Second, Faults: clientFaults(),
			Broken: map[Fault]string{ServerKill: "a session ends with the server, and its holder learns of that by its next sign of life"},
			start: func(t testing.TB) *Instance {
				s := servers.MariaDBServer(t, nil)
				return &Instance{Server: s, Addr: s.Addr(), URL: func(a string) string { return "mysql://root@" + a + "/" + servers.MariaDBDatabase }}
			},
		},
	}
}

func redis(s *servers.RedisNode) *Instance {
	do := func(args ...string) func(context.Context, *rand.Rand, time.Duration) error {
		return func(ctx context.Context, _ *rand.Rand, _ time.Duration) error {
			_, err := s.Do(ctx, args...)
			return err
		}
	}
	return &Instance{
		Server: s, Addr: s.Addr(), URL: func(a string) string { return "redis://" + a },
		Pokes: map[Fault]func(context.Context, *rand.Rand, time.Duration) error{Forget: do("SCRIPT", "FLUSH"), Wipe: do("FLUSHALL")},
	}
}
