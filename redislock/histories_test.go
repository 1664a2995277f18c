package redislock

import (
	"context"
	"flag"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/memlock"
	"github.com/interlock-go/interlock/redislock/internal/rueidisconn"
	"github.com/redis/rueidis"
)

// The same random histories run on the reference model and on a server, and both must say the same after every step.
var (
	historySeed  = flag.Uint64("seed", 0, "replay the random history with this seed")
	historyCount = flag.Int("histories", 2, "how many random histories to run")
	historySteps = flag.Int("steps", 150, "how many steps a random history has")
)

const (
	clients = 3
	// chapterSteps is after how many steps all is given back, and nothing must be left.
	chapterSteps = 50
	// patience bounds what must happen but may take its time.
	patience = 10 * time.Second
	// longLease never ends in a test.
	longLease = 10 * time.Minute
)

// engine is what both sides can do.
type engine interface {
	driver.Driver
	driver.Renewer
	driver.Requeuer
	driver.MultiAcquirer
	driver.Converter
	driver.Adopter
	driver.Resizer
	driver.Inspector
	driver.Breaker
}

// The sides of a comparison.
const (
	model = iota
	redis
	sides
)

// history drives the clients of both sides through the same random steps.
type history struct {
	t       *testing.T
	seed    uint64
	rng     *rand.Rand
	engines [sides][]engine
	prefix  string

	keys    []driver.Key
	crowded driver.Key           // where most happens in this chapter
	named   int                  // how many of ten requests in this chapter have a named owner
	limit   int                  // with which most permits are asked for
	lease   func() time.Duration // of the next request
	calls   []*twin              // that are under way
	ids     []*twin              // the first call of each request
	renamed map[string]bool      // renewed by another client than the one that asked
	copied  map[string]bool      // asked for twice
	tokens  map[driver.Key]*pairs
	losses  *losses
	watch   *vigil
	begun   time.Time    // when the sides began to be compared
	until   time.Time    // before which no lease ends by itself; zero if none does
	pushed  atomic.Int64 // grants that came by a push
	trace   []string
}

// histories counts them.
var histories atomic.Int64

// opener makes one client of the server.
type opener func(t *testing.T, addr string, opts *Options) *Driver

// openPlain makes a client whose pushes must be confirmed.
func openPlain(t *testing.T, addr string, opts *Options) *Driver {
	t.Helper()
	d, err := start(t.Context(), newPlainConn(newClient(t, addr)), opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// openPushed makes a client whose pushes are trusted.
func openPushed(t *testing.T, addr string, opts *Options) *Driver {
	t.Helper()
	d, err := start(t.Context(), rueidisconn.New(newClient(t, addr), true), opts)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

func newClient(t *testing.T, addr string) rueidis.Client {
	t.Helper()
	c, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{addr}, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// newHistory has its keys under a prefix of its own.
func newHistory(t *testing.T, open opener, seed uint64, nodes ...*servers.RedisNode) *history {
	t.Helper()
	h := &history{
		t: t, seed: seed, rng: rand.New(rand.NewPCG(seed, 0)),
		prefix: fmt.Sprintf("history%d-%d:", histories.Add(1), seed),
		// who was not heard of for the time of a claim is passed over
		watch: &vigil{pace.Of(t, nodes...), mostClaim / 4},
		keys: []driver.Key{
			{Kind: driver.KindMutex, Name: "x"},
			{Kind: driver.KindRWMutex, Name: "x"},
			{Kind: driver.KindRWMutex, Name: "{x}y"},
			{Kind: driver.KindSemaphore, Name: "x"},
			{Kind: driver.KindElection, Name: "x"},
			{Kind: driver.KindMutex, Name: "{x}y"}, // of one slot with the next
			{Kind: driver.KindMutex, Name: "{x}z"},
		},
		limit:   3,
		lease:   func() time.Duration { return longLease },
		renamed: make(map[string]bool), copied: make(map[string]bool), tokens: make(map[driver.Key]*pairs),
		losses: newLosses(),
	}
	store := memlock.New(nil)
	for range clients {
		h.engines[model] = append(h.engines[model], store.Peer())
		h.engines[redis] = append(h.engines[redis], open(t, nodes[0].Addr(), &Options{Prefix: h.prefix}))
	}
	t.Cleanup(func() {
		_ = store.Close()
		for _, side := range h.engines {
			for _, e := range side {
				_ = e.Close()
			}
		}
	})
	return h
}

// draw returns a number below n.
func (h *history) draw(n int) int { return h.rng.IntN(n) }

func (h *history) note(format string, args ...any) {
	h.trace = append(h.trace, fmt.Sprintf("%3d %s", len(h.trace), fmt.Sprintf(format, args...)))
}

func (h *history) fail(format string, args ...any) {
	h.t.Helper()
	differs := fmt.Sprintf("%s\n%s\nreplay it with: go test -run %s -seed %d",
		strings.Join(h.trace, "\n"), fmt.Sprintf(format, args...), strings.Split(h.t.Name(), "/")[0], h.seed)
	// What was compared just before a lease was to end may have been seen on one side before that
	// and on the other after it.
	if h.watch.failed() || !h.until.IsZero() && h.until.Sub(h.begun) < slack {
		panic(stalled{differs})
	}
	h.t.Fatal(differs)
}

// bounded is a context for what answers soon.
func (h *history) bounded() (context.Context, context.CancelFunc) {
	return context.WithTimeout(h.t.Context(), patience)
}

// run takes steps, and gives all back now and then.
func (h *history) run(steps int) {
	for n := range steps {
		if n%chapterSteps == 0 {
			h.turn()
		}
		h.step()
		h.settle()
		if (n+1)%chapterSteps == 0 {
			h.giveAllBack()
		}
	}
	h.giveAllBack()
}

// turn begins a chapter.
func (h *history) turn() {
	h.crowded, h.named = h.keys[h.draw(len(h.keys))], 3*h.draw(4)
	h.note("crowded is %s %q, %d of ten owners are named", h.crowded.Kind, h.crowded.Name, h.named)
}

// eachHistory runs f for each seed, and again if the machine stood still. That is no excuse for a
// history that differs each time.
func eachHistory(t *testing.T, f func(t *testing.T, seed uint64)) {
	t.Helper()
	run := func(t *testing.T, seed uint64) {
		t.Helper()
		always := true
		for range 3 {
			complete, differs := unlessStalled(func() { f(t, seed) })
			if complete {
				return
			}
			always = always && differs != ""
			t.Logf("seed %d: the machine stood still\n%s", seed, differs)
		}
		if always {
			t.Fatal("the machine stood still in all attempts, and the engines differed in all of them")
		}
		t.Skip("the machine stood still in all attempts")
	}
	if *historySeed != 0 {
		run(t, *historySeed)
		return
	}
	first := rand.Uint64N(1 << 48)
	for i := range uint64(*historyCount) {
		t.Run(fmt.Sprint("seed=", first+i), func(t *testing.T) {
			t.Parallel() // most of a history's time goes into waiting
			run(t, first+i)
		})
	}
}

func TestHistory_WithPushesThatAreConfirmed_IsThatOfTheModel(t *testing.T) {
	s := servers.RedisServer(t, nil)
	eachHistory(t, func(t *testing.T, seed uint64) {
		newHistory(t, openPlain, seed, s).run(*historySteps)
	})
}

func TestHistory_WithPushesThatAreTrusted_IsThatOfTheModel(t *testing.T) {
	s := servers.RedisServer(t, nil)
	eachHistory(t, func(t *testing.T, seed uint64) {
		h := newHistory(t, openPushed, seed, s)
		h.run(*historySteps)
		if *historySteps >= chapterSteps && h.pushed.Load() == 0 {
			h.fail("no grant came by a push")
		}
	})
}

func TestHistory_OnACluster_IsThatOfTheModel(t *testing.T) {
	nodes := servers.RedisCluster(t, 3, 0, nil).Nodes()
	eachHistory(t, func(t *testing.T, seed uint64) {
		newHistory(t, openPushed, seed, nodes...).run(*historySteps / 3)
	})
}

func TestHistory_WithReplicas_IsThatOfTheModel(t *testing.T) {
	r := servers.RedisReplicated(t, 1, nil)
	open := func(t *testing.T, addr string, opts *Options) *Driver {
		t.Helper()
		opts.Replicas, opts.ReplicaTimeout = 1, patience
		return openPushed(t, addr, opts)
	}
	eachHistory(t, func(t *testing.T, seed uint64) {
		newHistory(t, open, seed, r.Primary, r.Replicas[0]).run(*historySteps / 3)
	})
}
