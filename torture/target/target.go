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
	Wipe         Fault = "wipe"          // N16, N20: an operator deletes everything in the engine
	Sessions     Fault = "sessions"      // N14, N16: an operator ends all sessions, or closes all connections
	Memory       Fault = "memory"        // N15: the server refuses to store anything more (Redis)
	Clock        Fault = "clock"         // N10: the wall clock of a server jumps by some leases, or by an hour, and back
	Starve       Fault = "starve"        // N18: others take the processors
	NoFiles      Fault = "no-files"      // N19: a client can open nothing more, and its connections are reset
	Failover     Fault = "failover"      // N5: kill -9 of a primary; a replica takes over, and it comes back as one
	CutFailover  Fault = "cut-failover"  // N5: a replica takes over that has not heard of its primary for a while
	SlotMove     Fault = "slot-move"     // N17: a slot of a Cluster moves to another primary, with its locks
	NodeKill     Fault = "node-kill"     // N3: kill -9 of one of several servers, which is started again
	NodeStop     Fault = "node-stop"     // N4: SIGSTOP of one of several servers
)

// All lists the faults.
func All() []Fault {
	return []Fault{
		None, Kill, Stop, ServerKill, ServerStop, Cut, LateRequests, LoseReplies, Slow, Reset, Starve, NoFiles,
		Sessions, Forget, Memory, Clock, Wipe, Failover, CutFailover, SlotMove, NodeKill, NodeStop,
	}
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
	Pokes  map[Fault]Poke           // the faults that are this engine's own
}

// Poke does a fault that lasts about as long as it is told to, or ends at once, and has healed when it returns.
type Poke func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error

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

func targets() []*Target { return append(alone(), several()...) }
