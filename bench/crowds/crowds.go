// Package crowds measures what thousands who share a lock on Redis, wait for one or watch one cost the server, and what
// everybody else notices of them.
package crowds

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
	_ "github.com/interlock-go/interlock/redislock" // redis://
)

// Crowd is one measurement, on a server of its own.
type Crowd struct {
	Name string
	Idle bool    // nothing happens meanwhile
	Most float64 // of one processor, what those who are idle may cost beyond their connections
	run  func(ctx context.Context, b *bench) (Result, error)
}

// Result is what a crowd cost.
type Result struct {
	// Of those who share a lock.
	Lost, Failed       int
	AllIn, FirstUnlock time.Duration // until all have the lock, and until the call of Unlock before that returned

	// Of those who are idle: the server's time, as parts of one processor's, with the crowd and with as many
	// connections that say nothing.
	Share, Silence float64

	LongestRun           time.Duration // of a script
	PairP99, PairLongest time.Duration // of another client's lock and unlock
}

// Pace is how long a crowd is measured.
type Pace struct {
	Settles time.Duration // until nothing happens any more
	IdleFor time.Duration
	Stays   time.Duration // who shares a lock, so that each hold is renewed
	Waits   time.Duration // who waits for it, so that each is heard of
}

// Usual is the pace of tables.
var Usual = Pace{Settles: 10 * time.Second, IdleFor: 30 * time.Second, Stays: 12 * time.Second, Waits: 5 * time.Second}

// The bounds on what those who do nothing cost beyond their connections, as parts of one processor.
const (
	mostWatching = 0.02
	mostWaiting  = 0.05
)

// All are the crowds, with so many for each thousand.
func All(perThousand int) []Crowd {
	n := func(full int) int { return full * perThousand / 1000 }
	return []Crowd{
		{Name: "readers/600", run: readers(n(600))},
		{Name: "readers/2000", run: readers(n(2_000))},
		{Name: "readers/5000", run: readers(n(5_000))},
		{Name: "permits/5000", run: permits(n(5_000))},
		{Name: "observe/1000", Idle: true, Most: mostWatching, run: idleObservers(n(1_000))},
		{Name: "latch/1000", Idle: true, Most: mostWatching, run: idleLatchWaiters(n(1_000))},
		{Name: "wait-in-1-client/1500", Idle: true, Most: mostWaiting, run: idleWaiters(n(1_500), 1)},
		{Name: "wait-in-100-clients/10000", Idle: true, Most: mostWaiting, run: idleWaiters(n(10_000), max(n(100), 1))},
		{Name: "wait-apart/1000", Idle: true, Most: mostWaiting, run: apartWaiters(n(1_000))},
	}
}

// Measure starts a server and measures the crowd on it.
func (c *Crowd) Measure(ctx context.Context, pace Pace) (got Result, err error) {
	stage, err := servers.NewStage()
	if err != nil {
		return got, err
	}
	defer func() { err = errors.Join(err, stage.Close()) }()
	played := stage.Play(func(t testing.TB) {
		b := &bench{Pace: pace, node: servers.RedisServer(t, &servers.RedisOptions{Config: map[string]string{
			"slowlog-log-slower-than": "500", "slowlog-max-len": "100000", "maxclients": "20000",
		}})}
		defer b.close()
		b.precede(ctx)
		got, err = c.run(ctx, b)
	})
	return got, errors.Join(played, err)
}

// bench is one server and the clients of one row.
type bench struct {
	Pace
	node    *servers.RedisNode
	clients []*interlock.Client
}

// precede gives the server precedence over the clients, if the system lets us: how long a script runs must be
// measured, not how often thousands of goroutines beside it take its processor.
func (b *bench) precede(ctx context.Context) {
	info, err := b.node.Info(ctx, "server")
	if err != nil {
		return
	}
	if pid, err := strconv.Atoi(info["process_id"]); err == nil {
		_ = syscall.Setpriority(syscall.PRIO_PROCESS, pid, -20)
	}
}

// open opens n clients.
func (b *bench) open(ctx context.Context, n int) ([]*interlock.Client, error) {
	var opened []*interlock.Client
	for range n {
		c, err := interlock.Open(ctx, "redis://"+b.node.Addr()+"?check=none", nil)
		if err != nil {
			return nil, err
		}
		b.clients, opened = append(b.clients, c), append(opened, c)
	}
	return opened, nil
}

func (b *bench) close() {
	for _, c := range b.clients {
		_ = c.Close()
	}
	b.clients = nil
}

// burnt is the processor time that the server has taken until now.
func (b *bench) burnt(ctx context.Context) (time.Duration, error) {
	info, err := b.node.Info(ctx, "cpu")
	if err != nil {
		return 0, err
	}
	var user, system float64
	if _, err := fmt.Sscan(info["used_cpu_user"]+" "+info["used_cpu_sys"], &user, &system); err != nil {
		return 0, err
	}
	return time.Duration((user + system) * float64(time.Second)), nil
}

// share is the part of one processor that the server takes while nothing happens for that long.
func (b *bench) share(ctx context.Context, lasts time.Duration) (float64, error) {
	before, err := b.burnt(ctx)
	if err != nil {
		return 0, err
	}
	begin := time.Now()
	time.Sleep(lasts)
	after, err := b.burnt(ctx)
	return (after - before).Seconds() / time.Since(begin).Seconds(), err
}

// slowest is the longest run of a script so far.
func (b *bench) slowest(ctx context.Context) (time.Duration, error) {
	conn, err := b.node.Dial(ctx)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	log, err := conn.Do(ctx, "SLOWLOG", "GET", "-1")
	if err != nil {
		return 0, err
	}
	entries, _ := log.([]any)
	longest := int64(0)
	for _, e := range entries {
		f, _ := e.([]any)
		if took, ok := f[2].(int64); ok && strings.HasPrefix(strings.ToUpper(fmt.Sprint(f[3])), "[EVAL") {
			longest = max(longest, took)
		}
	}
	return time.Duration(longest) * time.Microsecond, nil
}
