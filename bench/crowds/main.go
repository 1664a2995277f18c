// Command crowds measures what thousands who share a lock on Redis, wait for one or watch one cost the server, and what
// everybody else notices of them.
//
//	GOWORK=off go run ./crowds            (in bench/; five minutes)
//	GOWORK=off go run ./crowds -only idle
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/drivertest/servers"
	_ "github.com/interlock-go/interlock/redislock" // redis://
)

// row is one measurement and what is demanded of it.
type row struct {
	name string
	run  func(ctx context.Context, b *bench) (result, error)
}

// result is what came of it, in words, and whether the bounds are kept.
type result struct {
	got  string
	kept bool
}

var rows = []row{
	{"readers/600", readers(600)},
	{"readers/2000", readers(2_000)},
	{"readers/5000", readers(5_000)},
	{"permits/5000", permits(5_000)},
	{"idle observers/1000", idleObservers(1_000)},
	{"idle latch waiters/1000", idleLatchWaiters(1_000)},
	{"idle waiters/1500 of one client", idleWaiters(1_500, 1)},
	{"idle waiters/10000 of 100 clients", idleWaiters(10_000, 100)},
	{"idle waiters/1000 clients, each with a lock of its own", apartWaiters(1_000)},
}

func main() {
	only := flag.String("only", "", "measure the rows whose name begins with that")
	flag.Parse()
	if err := measure(*only); err != nil {
		fmt.Fprintln(os.Stderr, "crowds:", err)
		os.Exit(1)
	}
}

func measure(only string) error {
	stage, err := servers.NewStage()
	if err != nil {
		return err
	}
	defer stage.Close()
	fmt.Println("| what | measured | kept |\n|---|---|---|")
	for _, r := range rows {
		if !strings.HasPrefix(r.name, only) {
			continue
		}
		var got result
		played := stage.Play(func(t testing.TB) {
			node := servers.RedisServer(t, &servers.RedisOptions{Config: map[string]string{
				"slowlog-log-slower-than": "500", "slowlog-max-len": "100000", "maxclients": "20000",
			}})
			b := &bench{node: node}
			defer b.close()
			b.precede(context.Background())
			got, err = r.run(context.Background(), b)
		})
		if err := errors.Join(played, err); err != nil {
			return fmt.Errorf("%s: %w", r.name, err)
		}
		kept := "yes"
		if !got.kept {
			kept = "NO"
		}
		fmt.Printf("| %s | %s | %s |\n", r.name, got.got, kept)
	}
	return nil
}

// bench is one server and the clients of one row.
type bench struct {
	node    *servers.RedisNode
	clients []*interlock.Client
}

// precede gives the server precedence over the clients, if the system lets us: how long a script runs is to be measured, not how
// often thousands of goroutines beside it take its processor.
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
			if took > longest && os.Getenv("SLOW") != "" {
				fmt.Fprintln(os.Stderr, took, fmt.Sprint(f[3])[:min(400, len(fmt.Sprint(f[3])))])
			}
			longest = max(longest, took)
		}
	}
	return time.Duration(longest) * time.Microsecond, nil
}
