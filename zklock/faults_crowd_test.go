package zklock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
)

// short returns a context for what will not succeed.
func short(t testing.TB) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), 300*time.Millisecond)
	t.Cleanup(cancel)
	return ctx
}

const (
	crowdDrivers = 10
	crowdSize    = 120
)

// One release wakes one waiter, however many there are, and they are served in their order.
func TestCrowd_OneReleaseWakesOneWaiter(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	var drivers []*Driver
	for range crowdDrivers {
		drivers = append(drivers, open(t, []string{n.Addr()}, &Options{Root: root}))
	}
	woken := func() (sum int64) {
		for _, d := range drivers {
			d.mu.Lock()
			sum += d.woken
			d.mu.Unlock()
		}
		return sum
	}
	holder := drivers[0]
	r := request("lock")
	last := take(t, holder, r).Token
	var waits []*waiting
	for i := range crowdSize {
		waits = append(waits, queue(t, drivers[i%crowdDrivers], request("lock")))
	}
	if early := woken(); early != 0 {
		t.Errorf("%d were woken while they queued", early)
	}
	began := time.Now()
	for i, w := range waits {
		give(t, holder, r)
		g := w.granted(t, fmt.Sprint("waiter ", i))
		if g.Token <= last {
			t.Fatalf("token %d after %d", g.Token, last)
		}
		if all := woken(); all != int64(i)+1 {
			t.Fatalf("%d waiters were woken by %d releases", all, i+1)
		}
		holder, r, last = drivers[i%crowdDrivers], w.r, g.Token
	}
	give(t, holder, r)
	t.Logf("%d waiters were served in %v", crowdSize, time.Since(began))
}

// What the server says of its watches agrees: each release fires the watch of one waiter.
func TestCrowd_TheServerCountsOneWatchForEachRelease(t *testing.T) {
	n, root := servers.ZooKeeperServer(t, nil), freshRoot()
	d := open(t, []string{n.Addr()}, &Options{Root: root})
	other := open(t, []string{n.Addr()}, &Options{Root: root})
	r := request("lock")
	take(t, d, r)
	var waits []*waiting
	for range 20 {
		waits = append(waits, queue(t, other, request("lock")))
	}
	// The holders' own watches on their nodes are not a waiter's; a hold that is young has none.
	before := watchesFired(t, n)
	holder := d
	for _, w := range waits {
		give(t, holder, r)
		w.granted(t, "a waiter")
		holder, r = other, w.r
	}
	give(t, holder, r)
	fired := watchesFired(t, n) - before
	if fired < 20 || fired > 22 { // the first hold is old, and is watched by its own client
		t.Errorf("21 releases with 20 waiters have fired %d watches", fired)
	}
}

var firedCount = regexp.MustCompile(`(?m)^zk_sum_node_(?:changed|deleted|children)_watch_count\s+(\d+)`)

// watchesFired returns how many watches the server has fired.
func watchesFired(t testing.TB, n *servers.ZooKeeperNode) (sum int) {
	t.Helper()
	answer, err := n.Ask(bounded(t), "mntr")
	if err != nil {
		t.Fatal(err)
	}
	found := firedCount.FindAllStringSubmatch(answer, -1)
	if found == nil {
		t.Fatalf("the server counts no watches: %s", answer)
	}
	for _, f := range found {
		v, _ := strconv.Atoi(f[1])
		sum += v
	}
	return sum
}

const cancels = 60

// A cancelled Lock leaves the lock free at once, whenever that was.
func TestCancel_AtAnyMoment_LeavesTheLockFreeAtOnce(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	a := newAdmin(t, n.Addr())
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	random := rand.New(rand.NewPCG(seed, 0))
	var free []time.Duration
	for _, delay := range []time.Duration{0, 2 * time.Millisecond} {
		p := servers.NewProxy(t, n.Addr())
		p.Delay(servers.BothWays, delay)
		asks := openLocks(t, urlOf(root, p.Addr()), nil)
		holds := openLocks(t, urlOf(root, n.Addr()), nil)
		for i := range cancels {
			name := fmt.Sprint("lock-", i)
			var held *interlock.Lease
			if i%2 == 1 {
				held = mustLock(t, holds, name)
			}
			ctx, cancel := context.WithCancel(context.Background())
			time.AfterFunc(time.Duration(random.Int64N(int64(4*delay+3*time.Millisecond))), cancel)
			var freed chan error
			if held != nil {
				freed = make(chan error, 1)
				at := time.After(time.Duration(random.Int64N(int64(4*delay + 3*time.Millisecond))))
				go func() { // ends with the unlock
					<-at
					freed <- held.Unlock(context.Background())
				}()
			}
			l, err := asks.Lock(ctx, name)
			switch {
			case err == nil:
				mustUnlock(t, l)
			case !errors.Is(err, context.Canceled):
				t.Errorf("a cancelled Lock says %v", err)
			}
			if freed != nil {
				if err := receive(t, "the unlock", freed); err != nil {
					t.Errorf("Unlock: %v", err)
				}
			}
			free = append(free, freeAfter(t, holds, name))
			cancel()
		}
	}
	slices.Sort(free)
	if median := free[len(free)/2]; median > time.Second { // single ones are late when the machine stands still
		t.Errorf("half of the locks were free only %v after a cancelled Lock had returned", median)
	}
	for i := range cancels {
		path := root + "/mutex/lock-" + strconv.Itoa(i)
		soon(t, "nothing to be left of "+path, func() bool { return len(a.nodes(path)) == 0 })
	}
}

// freeAfter returns when a lock is free after a Lock of it was cancelled, and how long that has taken. It is less than
// the session, which is not what frees it.
func freeAfter(t testing.TB, c *interlock.Client, name string) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		l, err := c.TryLock(bounded(t), name)
		took := time.Since(begin)
		if err == nil {
			mustUnlock(t, l)
			return took
		}
		if !errors.Is(err, interlock.ErrHeld) || took > patience {
			t.Fatalf("%q is not free %v after a cancelled Lock had returned: %v", name, took, err)
		}
		<-time.After(200 * time.Microsecond)
	}
}

// Close ends waits, and gives back what was held, at once.
func TestClose_WithWaiters(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	a := newAdmin(t, n.Addr())
	c, err := interlock.Open(bounded(t), urlOf(root, n.Addr()), nil)
	if err != nil {
		t.Fatal(err)
	}
	held := mustLock(t, c, "one")
	other := mustLock(t, openLocks(t, urlOf(root, n.Addr()), nil), "two")
	own, foreign := lockWith(t, c, "one"), lockWith(t, c, "two")
	soon(t, "the wait for another client", func() bool { return len(a.nodes(root+"/mutex/two")) == 2 })
	behind := startLock(t, urlOf(root, n.Addr()), nil, "one")
	over := alarm(farewell)
	if err := c.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	closed := time.Now()
	if late := closed.Sub(<-over); late > farewell {
		t.Errorf("Close took %v longer than the farewell may", late)
	}
	for _, w := range []*locking{own, foreign} {
		if got := receive(t, "a wait to end with Close", w.done); !errors.Is(got.err, interlock.ErrClosed) {
			t.Errorf("a wait ended by Close says %v", got.err)
		}
	}
	if err := held.Err(); !errors.Is(err, interlock.ErrReleased) {
		t.Errorf("the lease says %v", err)
	}
	mustUnlock(t, behind.granted("who waited for the closed client").l)
	soon(t, "the node of the waiter that has closed to be gone", func() bool {
		return len(a.nodes(root+"/mutex/two")) == 1
	})
	mustUnlock(t, other)
}

// Close does not wait for a server that hangs.
func TestClose_WithAServerThatHangs(t *testing.T) {
	n, root := sharedServer(t), freshRoot()
	d, err := New(bounded(t), []string{n.Addr()}, &Options{Root: root, Timeout: faultLease})
	if err != nil {
		t.Fatal(err)
	}
	r := request("lock")
	take(t, d, r)
	w := queue(t, d, request("lock"))
	n.Stop()
	defer n.Cont()
	over := alarm(farewell)
	if err := d.Close(); err != nil {
		t.Errorf("Close: %v", err)
	}
	closed := time.Now()
	if late := closed.Sub(<-over); late > farewell {
		t.Errorf("Close took %v longer than the farewell may", late)
	}
	if got := receive(t, "the wait to end", w.done); !errors.Is(got.err, driver.ErrClosed) {
		t.Errorf("a wait ended by Close says %v", got.err)
	}
	n.Cont()
	free := open(t, []string{n.Addr()}, &Options{Root: root})
	again := request("lock") // the session ends by its timeout, or the parting words arrive
	take(t, free, again)
	give(t, free, again)
}
