package redislock_test

import (
	"context"
	"fmt"
	"regexp"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/pace"
	"github.com/interlock-go/interlock/internal/servers"
)

// After Close there are no goroutines, no connections, and no keys but floors and tombstones, however the servers are
// arranged and whatever was under way. (For a Cluster see TestCluster_Faults.)
func TestClose_LeavesNothing(t *testing.T) {
	t.Run("Alone", func(t *testing.T) {
		s := servers.RedisServer(t, nil)
		leavesNothing(t, redisURL("redis", s.Addr()), []*servers.RedisNode{s}, s)
	})
	t.Run("Sentinel", func(t *testing.T) {
		s := servers.RedisSentinel(t, 1, nil)
		leavesNothing(t, sentinelURL(s), append(s.SentinelNodes(), s.Nodes()...), s.Primary())
	})
	t.Run("WaitingForReplicas", func(t *testing.T) {
		r := servers.RedisReplicated(t, 1, nil)
		leavesNothing(t,
			withQuery(withQuery(redisURL("redis", r.Primary.Addr()), "replicas", "1"), "replica-timeout", "10s"),
			[]*servers.RedisNode{r.Primary, r.Replicas[0]}, r.Primary)
	})
}

// leavesNothing opens clients that hold, wait, renew and are cut off, closes them, and looks.
func leavesNothing(t *testing.T, url string, nodes []*servers.RedisNode, primaries ...*servers.RedisNode) {
	before := ourStacks()
	connected := clients(t, nodes)
	watch := locktest.NewNews()
	// Who waits must not get in because the machine stood still.
	o := &interlock.Options{Lease: 15 * time.Second, Renewal: 50 * time.Millisecond, Observer: watch.Observer()}
	var all []*interlock.Client
	for range 3 {
		all = append(all, openLocks(t, url, o))
	}
	waited := make(chan error, 10)
	for i := range 10 {
		mustLock(t, all[0], fmt.Sprint("lock ", i))
		go func() { waited <- second(all[1].Lock(context.Background(), fmt.Sprint("lock ", i))) }()
		receive(t, "a waiter to be queued", watch.Queued)
		mustLock(t, all[2], fmt.Sprint("other ", i))
	}
	for range 20 {
		receive(t, "a renewal", watch.Renewed)
	}
	for _, n := range primaries { // whoever reconnects must not do so for ever
		mustDo(t, n, "CLIENT", "KILL", "TYPE", "normal")
	}
	clock := pace.Process()
	for _, c := range []*interlock.Client{all[1], all[0], all[2]} { // who waits first
		begin := clock.Now()
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
		if took := clock.Now() - begin; took > 3*time.Second {
			t.Errorf("Close took %v", took)
		}
	}
	for range 10 {
		if err := receive(t, "a wait to end", waited); err == nil {
			t.Error("a wait has succeeded by Close")
		}
	}
	var left []string
	if !within(faultsPatience, func() bool { left = newStacks(before); return len(left) == 0 }) {
		t.Errorf("goroutines are left:\n%s", strings.Join(left, "\n\n"))
	}
	var open []string
	if !within(faultsPatience, func() bool { open = newClients(connected, clients(t, nodes)); return len(open) == 0 }) {
		t.Errorf("connections are left:\n%s", strings.Join(open, "\n"))
	}
	noneLeft(t, primaries...)
}

// ourStacks returns the stacks of goroutines of interlock and its client, by "goroutine N".
func ourStacks() map[string]string {
	buf := make([]byte, 16<<20)
	all := map[string]string{}
	for stack := range strings.SplitSeq(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		id, _, _ := strings.Cut(stack, " [")
		ours := strings.Contains(stack, "interlock-go/interlock.") ||
			strings.Contains(stack, "interlock-go/interlock/internal/shell.") ||
			strings.Contains(stack, "/redislock.") ||
			strings.Contains(stack, "/redislock/") ||
			strings.Contains(stack, "redis/rueidis")
		if ours && !strings.Contains(stack, "testing.tRunner(") {
			all[id] = stack
		}
	}
	return all
}

func newStacks(before map[string]string) (left []string) {
	for id, stack := range ourStacks() {
		if before[id] == "" {
			left = append(left, stack)
		}
	}
	return left
}

// notOurs are connections of servers to each other, and those that only look.
var notOurs = regexp.MustCompile(`name=sentinel-|flags=[SM]|cmd=(client\|list|replconf)`)

// clients returns the servers' connections by address and id, as CLIENT LIST has them.
func clients(t testing.TB, nodes []*servers.RedisNode) map[string]string {
	t.Helper()
	all := map[string]string{}
	for _, n := range nodes {
		list, _ := mustDo(t, n, "CLIENT", "LIST").(string)
		for line := range strings.Lines(list) {
			id, _, _ := strings.Cut(line, " ")
			if !notOurs.MatchString(line) {
				all[n.Addr()+" "+id] = line
			}
		}
	}
	return all
}

func newClients(before, now map[string]string) (left []string) {
	for id, line := range now {
		if before[id] == "" {
			left = append(left, line)
		}
	}
	return left
}

// What a client leaves that is gone without a word, its holds, ends with their leases.
func TestHolders_ThatVanish_LeaveNothingAfterTheirLeases(t *testing.T) {
	s := servers.RedisServer(t, nil)
	p := servers.NewProxy(t, s.Addr())
	o := &interlock.Options{Lease: time.Second, CloseTimeout: time.Millisecond}
	c := openLocks(t, redisURL("redis", p.Addr()), o)
	for i := range 20 {
		mustLock(t, c, fmt.Sprint("lock ", i))
	}
	p.BlackHole(servers.BothWays)
	clock := pace.Of(t, s)
	begin := clock.Now()
	noneLeft(t, s)
	took := clock.Now() - begin
	t.Logf("nothing was left after %v", took)
	if took > 3*o.Lease {
		t.Errorf("it took %v with a lease of %v", took, o.Lease)
	}
}
