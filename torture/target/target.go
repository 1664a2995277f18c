// Package target starts the engines that a run can torture, and says what each has promised to keep under which fault.
package target

import (
	"context"
	"database/sql"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/torture/history"
)

// Fault is what a nemesis does.
type Fault string

// The faults, with their numbers among the nemeses N0 to N20.
const (
	None       Fault = "none"        // N0
	Kill       Fault = "kill"        // N1: kill -9 of a client, which is started again
	KillWaiter Fault = "kill-waiter" // N1: kill -9 of the client that stands first in the line for a lock
	// N1: kill -9 of a client with requests under way that have not arrived, or answers.
	KillAsking   Fault = "kill-asking"
	Stop         Fault = "stop"          // N2: SIGSTOP of a client for half to three leases
	ServerKill   Fault = "server-kill"   // N3: kill -9 of the server, and a new start
	PowerCut     Fault = "power-cut"     // N3: the same, and what the disk need not have had yet is gone
	ServerStop   Fault = "server-stop"   // N4: SIGSTOP of the server
	Cut          Fault = "cut"           // N6: nothing passes between a client and the server
	LateRequests Fault = "late-requests" // N7: what a client sends arrives when the fault is over
	LoseReplies  Fault = "lose-replies"  // N8: requests arrive, answers are lost
	// N8: what gives a hold back, changes its mode or leaves a line arrives, and its answer is lost.
	LoseEnds Fault = "lose-ends"
	// N11: up to one and a half leases on the way to the server and to the register.
	Slow  Fault = "slow"
	Reset Fault = "reset" // N12: connections are reset, again and again
	// N12: all arrives byte by byte, and connections end in the middle of a reply.
	Slices   Fault = "slices"
	Forget   Fault = "forget"   // N13: the server forgets its scripts (Redis)
	Wipe     Fault = "wipe"     // N16, N20: an operator deletes everything in the engine
	Delete   Fault = "delete"   // N16: an operator deletes one lock, with its holder and all waiters for it
	Sessions Fault = "sessions" // N14, N16: an operator ends all sessions, or closes all connections
	Memory   Fault = "memory"   // N15: the server refuses to store anything more (Redis)
	// N10: the wall clock of a server jumps by some leases, or by an hour, and back.
	Clock  Fault = "clock"
	Clocks Fault = "clocks" // N10: those of most of several servers do, all alike
	// N19: a client can have one connection to the server, and its others are reset.
	OneConn       Fault = "one-connection"
	Starve        Fault = "starve"         // N18: others take the processors
	NoFiles       Fault = "no-files"       // N19: a client can open nothing more, and its connections are reset
	Failover      Fault = "failover"       // N5: kill -9 of a primary; a replica takes over, and it comes back as one
	CutFailover   Fault = "cut-failover"   // N5: a replica takes over that has not heard of its primary for a while
	ClockFailover Fault = "clock-failover" // N5, N10: a replica takes over whose wall clock is wrong
	SlotMove      Fault = "slot-move"      // N17: a slot of a Cluster moves to another primary, with its locks
	LeaderMove    Fault = "leader-move"    // N17: a leader or primary hands its office to another, and stays
	NodeKill      Fault = "node-kill"      // N3: kill -9 of one of several servers, which is started again
	NodeStop      Fault = "node-stop"      // N4: SIGSTOP of one of several servers
	// N9: of several servers some, and some of the clients, cannot hear the others.
	Partition Fault = "partition"
	// N3, N4, N9: a leader that stands still, or hears nothing, while the others are started again and elect another.
	Depose   Fault = "depose"
	DiskFull Fault = "disk-full" // N20: there is no room left where the engine keeps its data
	Evict    Fault = "evict"     // N15: the server is out of memory, and throws away what it likes (Redis)
)

// onLinks can be done to the ways between a client and the servers.
var onLinks = []Fault{Cut, LateRequests, LoseReplies, LoseEnds, Slow, Reset, Slices, OneConn}

// TakesProxies reports whether the fault is done by proxies between a client and the servers,
// alone or among other things.
func (f Fault) TakesProxies() bool {
	return f == NoFiles || f == KillAsking || f == Depose || slices.Contains(onLinks, f)
}

// Kills reports whether the fault is kill -9 of a client.
func (f Fault) Kills() bool { return f == Kill || f == KillWaiter || f == KillAsking }

// StopsServers reports whether servers end, or stand still, or end what clients have of them.
func (f Fault) StopsServers() bool {
	return f == ServerKill || f == ServerStop || f == Sessions || f == DiskFull || f == Clock
}

// setsClocks reports whether the fault is one of wall clocks.
func (f Fault) setsClocks() bool { return f == Clock || f == Clocks || f == ClockFailover }

// All lists the faults.
func All() []Fault {
	return []Fault{
		None, Kill, KillWaiter, KillAsking, Stop, ServerKill, PowerCut, ServerStop, Cut, LateRequests, LoseReplies,
		LoseEnds, Slow, Reset, Slices, OneConn, Starve, NoFiles, Sessions, Forget, Memory, Evict, DiskFull, Clock,
		Clocks, Wipe, Delete, Failover, CutFailover, ClockFailover, SlotMove, LeaderMove, NodeKill, NodeStop, Partition,
		Depose,
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
	// Leases are longer ones, for faults that would otherwise outlast the lease, so that nobody had a lock twice; and
	// those that Depose takes.
	Leases map[Fault]time.Duration
	// Untold are those of Broken of which clients know at once, because their connections end. One of them
	// hears nothing meanwhile.
	Untold []Fault
	// Connected says that its sessions are connections: with one its locks end, whoever ends it, and both sides
	// notice that by themselves.
	Connected bool
	// Syncs says that its servers, as they are started here, answer only when their disks have what they were told.
	Syncs bool
	// Keeps is how long a waiter keeps a place in line; 0 is for as long as that takes.
	Keeps time.Duration
	// Heal is how long after the end of a fault nobody may get a lock.
	Heal time.Duration
	// Inside says that it is inside of a process: who is in another one has other locks of the same names.
	Inside bool
	// Tells says that its servers tell clients where they are. So proxies have to stand in the servers'
	// places, which takes a network.
	Tells bool
	// OnlyT2 says that T1 has no time for it.
	OnlyT2 bool
	start  func(t testing.TB, g *ground) *Instance
}

// Instance is a target that was started.
type Instance struct {
	Server Server // nil if it has none, or several
	// Addrs is where the servers are of which clients are told by us.
	Addrs []string
	// Places is where the servers are of which clients hear from these.
	Places []string
	// for a client to which the servers are at other addresses, in the same order
	URL        func(addrs []string) string
	Injections map[Fault]Inject // the faults that are this engine's own

	version version                     // nil if there is no server
	left    left                        // nil if nobody knows how to look
	stores  func() []*servers.RedisNode // those that take writes; nil of engines that are no Redis
	// Network is where the servers are, and the clients have to be, if a fault needs one; otherwise nil.
	Network *servers.Network
	Clients []*servers.Member // of the network
	// Holder returns the client that has the lock by its own word, and since when, or nil. It is for a run with one
	// lock that is held for long.
	Holder func() (client *servers.Member, since time.Time)
	// Steer has a client reach the server at that address and no other, until what it returns is called. If the client
	// does not come to that server the error is ErrNothing, and the client reaches all as before.
	Steer func(client *servers.Member, addr string) (end func(), err error)
}

// Direct is the URL for those who come to the servers without a proxy.
func (i *Instance) Direct() string { return i.URL(i.Addrs) }

// at makes URLs of an engine that lists its servers' addresses between these two.
func at(before, after string) func(addrs []string) string {
	return func(addrs []string) string { return before + strings.Join(addrs, ",") + after }
}

// Inject does a fault that lasts about as long as it is told to, or ends at once, and has healed when it returns.
type Inject func(ctx context.Context, dice *rand.Rand, lasts time.Duration) error

// Server is one that can be treated badly.
type Server interface {
	Kill()
	Restart()
	Stop()
	Cont()
}

// Start starts the target for t, so that the faults can be done to it.
func (g *Target) Start(t testing.TB, faults []Fault) *Instance {
	t.Helper()
	on := &ground{clocks: slices.ContainsFunc(faults, Fault.setsClocks), deposes: slices.Contains(faults, Depose)}
	if slices.ContainsFunc(faults, g.takesNetwork) {
		on.network = servers.NewNetwork(t)
	}
	if slices.Contains(faults, DiskFull) {
		on.disk = servers.NewDisk(t, diskSize)
	}
	i := g.start(t, on)
	i.Network = on.network
	return i
}

// ground is where the servers stand.
type ground struct {
	network *servers.Network // nil unless a fault needs one
	disk    *servers.Disk    // nil unless the fault fills it
	clocks  bool             // set wrong by a fault
	deposes bool             // a leader is deposed
}

// clock returns one that can be set, or nil if no fault sets one: to make it takes a compiler,
// which nothing else needs.
func (on *ground) clock(t testing.TB) *servers.Clock {
	if !on.clocks {
		return nil
	}
	return servers.NewClock(t)
}

// Withheld says why the fault cannot be done to the target on this machine, if that is so. It is nil if
// INTERLOCK_REQUIRE wants what the fault needs: then a run fails without it.
func (g *Target) Withheld(f Fault) error {
	switch {
	case f == DiskFull || g.takesNetwork(f):
		return servers.Waived()
	case f.setsClocks():
		return servers.ClockWaived()
	}
	return nil
}

// takesNetwork reports whether servers and clients have to be in a network of their own for the fault.
func (g *Target) takesNetwork(f Fault) bool {
	return f == Partition || f == Depose || g.Tells && f.TakesProxies()
}

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

func targets() []*Target {
	all := append(alone(), several()...)
	for _, g := range all {
		i := slices.Index(g.Faults, Kill) + 1
		if i > 0 && g.Can(LoseReplies) {
			g.Faults = slices.Insert(g.Faults, i, KillAsking)
		}
		if i > 0 && g.lists() {
			g.Faults = slices.Insert(g.Faults, i, KillWaiter)
		}
	}
	return all
}

// Again is how long, at most, a lock whose holder was killed stays free when its lease has run out, although others
// want it and whoever of them was killed too. Leases last for lease.
func (g *Target) Again(lease time.Duration) time.Duration {
	claim := min(lease, 2*time.Second) // one of the dead may be granted what it does not claim
	switch {
	case strings.HasPrefix(g.Name, "redis"):
		return claim
	case strings.HasPrefix(g.Name, "redlock"):
		return claim + time.Second // those who live may split the votes
	}
	return time.Second // sessions end some ticks late
}

// Behind is how long, at most, a lock that was given back stays free although others want it, because some of them
// were killed: on Redis the dead are passed over, elsewhere their sessions have to end.
func (g *Target) Behind(lease time.Duration) time.Duration {
	if strings.HasPrefix(g.Name, "redis") || strings.HasPrefix(g.Name, "redlock") {
		return g.Again(lease)
	}
	return lease + g.Again(lease)
}

// Abilities are what an engine can do that others cannot.
type Abilities struct {
	Shares  []history.Share // how its locks can be shared
	Ordered bool            // its waiters are served first come, first served, also those of other processes
	// Sessions says that holds are trusted while a session is.
	Sessions bool
	// Recalls says that a holder is told when another process waits.
	Recalls bool
	// Named says that an owner that was named re-enters by asking the engine.
	Named bool
}

// Ask asks the engine at url.
func Ask(ctx context.Context, url string, lease time.Duration) (*Abilities, error) {
	d, err := driver.DefaultMux.Open(ctx, url, driver.Config{Lease: lease, Client: "coordinator"})
	if err != nil {
		return nil, err
	}
	t := d.Traits()
	_, unordered := t.Lacking(driver.Order)
	_, tellsNobody := t.Lacking(driver.Recalls)
	_, nameless := t.Lacking(driver.NamedOwners)
	return &Abilities{
		Shares: sharesOf(t), Ordered: !unordered, Sessions: t.Lifetime == driver.Sessions, Recalls: !tellsNobody,
		Named: !nameless,
	}, d.Close()
}

func sharesOf(t driver.Traits) (all []history.Share) {
	for _, of := range []struct {
		kind   driver.Kind
		shares []history.Share
	}{
		{driver.KindRWMutex, []history.Share{history.Reads, history.Writes}},
		{driver.KindSemaphore, []history.Share{history.Permits}},
		{driver.KindLatch, []history.Share{history.Latch}},
		{driver.KindCond, []history.Share{history.Waits}},
	} {
		if t.Supports(of.kind) {
			all = append(all, of.shares...)
		}
	}
	if _, lacks := t.Lacking(driver.Conversion); !lacks && t.Supports(driver.KindRWMutex) {
		all = append(all, history.Upgrades)
	}
	return all
}

// Recalls reports whether the target tells a holder that another process waits, as for the workload retain. That is to
// be known before anything is started, so it cannot be asked.
func (g *Target) Recalls() bool {
	with := func(engine string) bool { return strings.HasPrefix(g.Name, engine) }
	return g.Inside || with("redis") || with("zookeeper") || with("etcd")
}

// lists reports whether the target tells who waits for a lock. This must be known before anything is
// started, so it cannot be asked.
func (g *Target) lists() bool { return g.Name != "file" && !g.Inside }

// version asks a server which one it is.
type version func(ctx context.Context) (string, error)

// Version is the product and the version of the servers, empty if there are none.
func (i *Instance) Version(ctx context.Context) (string, error) {
	if i.version == nil {
		return "", nil
	}
	ctx, cancel := context.WithTimeout(ctx, 10*time.Second)
	defer cancel()
	text, err := i.version(ctx)
	if err != nil {
		return "", fmt.Errorf("which version the server is: %w", err)
	}
	return text, nil
}

func redisVersion(n *servers.RedisNode) version {
	return func(ctx context.Context) (string, error) {
		info, err := n.Info(ctx, "server")
		return "Redis " + info["redis_version"], err
	}
}

func etcdVersion(n *servers.EtcdNode) version {
	return func(ctx context.Context) (string, error) {
		r, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+n.Addr()+"/version", nil)
		if err != nil {
			return "", err
		}
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			return "", err
		}
		defer func() { _ = answer.Body.Close() }()
		var v struct {
			Server string `json:"etcdserver"`
		}
		err = json.NewDecoder(answer.Body).Decode(&v)
		return "etcd " + v.Server, err
	}
}

func zooKeeperVersion(n *servers.ZooKeeperNode) version {
	return func(ctx context.Context) (string, error) {
		text, err := n.Ask(ctx, "srvr")
		first, _, _ := strings.Cut(strings.TrimPrefix(text, "Zookeeper version: "), "-")
		return "ZooKeeper " + first, err
	}
}

func sqlVersion(product, driver, address, query string) version {
	return func(ctx context.Context) (string, error) {
		var v string
		err := onDatabase(driver, address, func(db *sql.DB) error { return db.QueryRowContext(ctx, query).Scan(&v) })
		v, _, _ = strings.Cut(v, " ")
		v, _, _ = strings.Cut(v, "-")
		return product + " " + v, err
	}
}
