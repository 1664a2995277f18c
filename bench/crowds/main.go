// Command crowds measures what thousands who share a lock on Redis, wait for one or watch one cost the server, and what
// everybody else notices of them.
//
//	GOWORK=off go run ./crowds                     (in bench/; ten minutes)
//	GOWORK=off go run ./crowds -only idle
//	GOWORK=off go run ./crowds -write README.md    puts the table there
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
	"github.com/interlock-go/interlock/internal/servers"
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

// plan is what is measured, with crowds of so many for each thousand.
func plan(perThousand int) []row {
	n := func(full int) int { return full * perThousand / 1000 }
	return []row{
		{"600 readers behind a writer", readers(n(600))},
		{"2,000 readers behind a writer", readers(n(2_000))},
		{"5,000 readers behind a writer", readers(n(5_000))},
		{"5,000 who want a permit, behind one who has all", permits(n(5_000))},
		{"idle: 1,000 clients observe an election", idleObservers(n(1_000))},
		{"idle: 1,000 clients wait for a latch", idleLatchWaiters(n(1_000))},
		{"idle: 1,500 of one client wait for a permit", idleWaiters(n(1_500), 1)},
		{"idle: 10,000 of 100 clients wait for a permit", idleWaiters(n(10_000), max(n(100), 1))},
		{"idle: 1,000 clients wait, each for another lock", apartWaiters(n(1_000))},
	}
}

func main() {
	only := flag.String("only", "", "measure the rows whose name begins with that")
	file := flag.String("write", "", "put the table into this file, between its marks")
	flag.Parse()
	table, err := measure(plan(1000), *only)
	fmt.Print(table)
	if err == nil && *file != "" {
		err = write(*file, table)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "crowds:", err)
		os.Exit(1)
	}
}

// measure returns a table of the rows.
func measure(rows []row, only string) (string, error) {
	stage, err := servers.NewStage()
	if err != nil {
		return "", err
	}
	defer stage.Close()
	table := "| what | measured | bounds kept |\n|---|---|---|\n"
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
			return table, fmt.Errorf("%s: %w", r.name, err)
		}
		kept := "yes"
		if !got.kept {
			kept = "no"
		}
		line := fmt.Sprintf("| %s | %s | %s |\n", r.name, got.got, kept)
		fmt.Fprint(os.Stderr, line) // the whole takes minutes
		table += line
	}
	return table, nil
}

// The marks between which the table stands.
const (
	beginMark = "<!-- crowds: begin; written by GOWORK=off go run ./crowds -write README.md -->\n"
	endMark   = "<!-- crowds: end -->\n"
)

func write(file, table string) error {
	old, err := os.ReadFile(file)
	if err != nil {
		return err
	}
	before, rest, begins := strings.Cut(string(old), beginMark)
	_, after, ends := strings.Cut(rest, endMark)
	if !begins || !ends {
		return fmt.Errorf("%s has no marks for the table", file)
	}
	return os.WriteFile(file, []byte(before+beginMark+"\n"+table+"\n"+endMark+after), 0o644)
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
