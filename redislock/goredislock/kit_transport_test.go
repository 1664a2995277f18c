package goredislock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/interlock-go/interlock/redislock/conn"
	"github.com/interlock-go/interlock/redislock/internal/conntest"
	"github.com/redis/go-redis/v9"
)

const testChannel = "push:test"

// What the tests of every Conn have in common.
type (
	told   = conntest.Told
	teller = conntest.Teller
)

var (
	pushed     = conntest.Push
	newTeller  = conntest.NewTeller
	nodesOf    = conntest.NodesOf
	isRefused  = conntest.IsRefused
	eventually = conntest.Eventually
)

// leaks watches the goroutines of go-redis and of this package.
var leaks = conntest.Leaks{Ours: func(stack string) bool {
	// go-redis keeps the time in a goroutine that never ends, one for the program.
	return (strings.Contains(stack, "goredislock.") || strings.Contains(stack, "redis/go-redis")) &&
		!strings.Contains(stack, "pool.init.")
}}

// begin opens a conn and starts it. Both it and the client are closed with the test.
func begin(t testing.TB, client redis.UniversalClient, h conn.Handler) *transport {
	t.Helper()
	c := opened(t, client)
	if err := c.Start(t.Context(), testChannel, h); err != nil {
		t.Fatalf("Start: %v", err)
	}
	return c
}

// opened is begin without Start.
func opened(t testing.TB, client redis.UniversalClient) *transport {
	t.Helper()
	leaks.Opened(t)
	c, err := newConn(client)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		awaitCommands()
		if err := client.Close(); err != nil {
			t.Errorf("closing the client: %v", err)
		}
		leaks.Closed()
	})
	return c
}

// awaitCommands waits, for a while, for commands that nobody waits for any more. go-redis looks into connections when
// it is closed, also into those in use, which the race detector reports.
func awaitCommands() {
	stacks := make([]byte, 4<<20)
	for end := time.Now().Add(10 * time.Second); time.Now().Before(end); {
		if !strings.Contains(string(stacks[:runtime.Stack(stacks, true)]), "go-redis/v9.(*baseClient).process") &&
			!strings.Contains(string(stacks[:runtime.Stack(stacks, true)]),
				"go-redis/v9.(*baseClient).generalProcessPipeline") {
			return
		}
		time.Sleep(5 * time.Millisecond) // real: the commands' own time limits end them
	}
}

// paper is a Conn that writes down the first call and refuses it.
type paper struct {
	conn.Conn
	sharded bool
	call    *conn.Call
}

func (p *paper) Start(context.Context, string, conn.Handler) error { return nil }
func (p *paper) Sharded() bool                                     { return p.sharded }
func (p *paper) Close() error                                      { return nil }

func (p *paper) Nodes(context.Context) ([]conn.Node, error) {
	return nil, nil
}

func (p *paper) Call(_ context.Context, c *conn.Call) conn.Reply {
	p.call = c
	return conn.Reply{Err: &conn.RefusedError{Err: errors.New("paper")}}
}

// written returns the call that a driver makes when f is done with it.
func written(t testing.TB, f func(d *redislock.Driver)) conn.Call {
	t.Helper()
	p := &paper{}
	d, err := redislock.NewConn(p, &redislock.Options{Check: redislock.CheckNone})
	if err != nil {
		t.Fatal(err)
	}
	defer d.Close()
	f(d)
	if p.call == nil {
		t.Fatal("the driver asks for nothing")
	}
	return *p.call
}

var requests atomic.Int64

// lockCall returns the call that asks for a lock for a minute, for an owner that nobody else is.
func lockCall(t testing.TB, name string) conn.Call {
	t.Helper()
	return written(t, func(d *redislock.Driver) {
		_, _ = d.Acquire(t.Context(), &driver.Request{ // is refused
			Key: driver.Key{Kind: driver.KindMutex, Name: name}, ID: fmt.Sprint("request", requests.Add(1)), Owner: "o",
			Lease: time.Minute, Try: true,
		})
	})
}

// lookCall returns the call that looks at the lock of another. It has one key only, so it can be asked
// for while its slot moves.
func lookCall(t testing.TB, of conn.Call) conn.Call {
	t.Helper()
	call := written(t, func(d *redislock.Driver) { d.Diagnose(t.Context()) })
	call.Keys, call.Slot = of.Keys[:1], of.Slot
	return call
}

// replicated is a call that waits for one replica.
func replicated(call conn.Call) conn.Call {
	call.Replicas, call.ReplicaTimeout = 1, 5*time.Second
	return call
}

// mustCall returns the first word of the answer to a call that must succeed: G for a lock that is granted, also to who
// has it already, and H for one that another has.
func mustCall(t *testing.T, c *transport, call conn.Call) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	r := c.Call(ctx, &call)
	if r.Err != nil {
		t.Fatalf("Call: %v", r.Err)
	}
	if r.Link != 0 {
		t.Errorf("link %d: pushes do not come over it", r.Link)
	}
	return word(r)
}

func word(r conn.Reply) string {
	first, _, _ := strings.Cut(r.Text, " ")
	return first
}

// runBatch runs a batch and returns the replies in the order of the calls.
func runBatch(ctx context.Context, t *testing.T, c *transport, calls []conn.Call) []conn.Reply {
	t.Helper()
	replies := make([]conn.Reply, len(calls))
	times := make([]atomic.Int32, len(calls))
	c.Batch(ctx, calls, func(i int, r conn.Reply) {
		if times[i].Add(1) == 1 {
			replies[i] = r
		}
	})
	for i := range times {
		if n := times[i].Load(); n != 1 {
			t.Errorf("done was called %d times for call %d", n, i)
		}
	}
	return replies
}

// admin runs a command over a connection of its own.
func admin(t testing.TB, addr string, args ...string) any {
	t.Helper()
	ctx := context.WithoutCancel(t.Context())
	link, err := servers.DialRedis(ctx, addr, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer link.Close()
	answer, err := link.Do(ctx, args...)
	if err != nil {
		t.Fatalf("%v: %v", args, err)
	}
	return answer
}

// ran returns how often a server has run a command.
func ran(t testing.TB, addr, command string) int {
	t.Helper()
	_, stats, _ := strings.Cut(fmt.Sprint(admin(t, addr, "INFO", "commandstats")), "cmdstat_"+command+":calls=")
	n := 0
	_, _ = fmt.Sscanf(stats, "%d", &n) // not there: never
	return n
}

// endsInTime runs f with a context of 200 ms, once that ends by its deadline and once by being cancelled, which go
// different ways in go-redis. It must not be exceeded by more than 50 ms, and what a busy machine adds; time in which
// this process stands still does not count.
func endsInTime(t *testing.T, name string, f func(ctx context.Context) error) {
	t.Helper()
	const limit, slack = 200 * time.Millisecond, 200 * time.Millisecond
	for _, cancelled := range []bool{false, true} {
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		if cancelled {
			ctx, cancel = context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			time.AfterFunc(limit, cancel)
		}
		clock, ended := pace.Process(), make(chan time.Duration, 1)
		// a machine under load lets this goroutine wait as long as the other
		context.AfterFunc(ctx, func() { ended <- clock.Now() })
		err := f(ctx)
		returned := clock.Now()
		if late := returned - <-ended; late > slack {
			t.Errorf("%s returned %v after its context had ended", name, late)
		}
		if err == nil {
			t.Errorf("%s: no error from a server that hangs", name)
		}
	}
}

// mostPipelined and patience are those of package conn.
const (
	mostPipelined = 512
	patience      = 2 * time.Second
)
