package pglock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
)

func TestLock_WhoseContextEnds_ReturnsAtOnceAndNothingStaysQueued(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	a := client(t, n.Addr(), "&table="+table, calm)
	told := make(chan struct{}, 100)
	b := observed(t, n.Addr(), "&table="+table, calm, &interlock.Observer{
		Waiting: func(context.Context, interlock.Event) { told <- struct{}{} },
	})
	ops := newAdmin(t, n)
	l := lock(t, a, "x")
	var times []time.Duration
	for range 20 {
		ctx, cancel := context.WithCancel(t.Context())
		got := make(chan error, 1)
		go func() { // ends with ctx
			_, err := b.Lock(ctx, "x")
			got <- err
		}()
		until(t, patience, func() error {
			return want(ops.one("SELECT count(*) FROM pg_locks l JOIN %s_waits w USING (pid) WHERE l.locktype = "+
				"'advisory' AND NOT l.granted", table), "1")
		})
		<-told
		begin := time.Now()
		cancel()
		err := <-got
		times = append(times, time.Since(begin))
		if !errors.Is(err, context.Canceled) || !errors.Is(err, interlock.ErrHeld) {
			t.Fatalf("a cancelled wait says %v, want held and the context's error", err)
		}
		until(t, patience, func() error {
			return want(ops.one("SELECT count(*) FROM pg_locks l JOIN %s_waits w USING (pid) WHERE l.locktype = "+
				"'advisory' AND NOT l.granted", table), "0")
		})
	}
	slices.Sort(times)
	t.Logf("cancelled waits returned after: median %v, worst %v", times[len(times)/2], times[len(times)-1])
	if times[len(times)/2] > 200*time.Millisecond { // the machine may stand still now and then
		t.Errorf("half of the cancelled waits took longer than %v", times[len(times)/2])
	}
	// Each wait was cancelled, and not ended with its session. The next one may come before that of the last is free
	// again.
	if n, err := strconv.Atoi(ops.one("SELECT count(*) FROM %s_waits", table)); err != nil || n < 1 || n > 4 {
		t.Errorf("20 waits were in %d sessions (%v), want a few", n, err)
	}
	unlock(t, l)
	unlock(t, lock(t, b, "x"))
}

func TestClose_EndsWaitsAndLeavesNoSession(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	a := client(t, n.Addr(), "&table="+table, 30*time.Second)
	ops := newAdmin(t, n)
	l := lock(t, a, "held")
	b, err := interlock.Open(t.Context(), "postgres://postgres@"+n.Addr()+"/postgres?sslmode=disable&table="+table,
		&interlock.Options{ClientName: "closing"})
	if err != nil {
		t.Fatal(err)
	}
	before := runtime.NumGoroutine()
	const crowd = 10
	got := make(chan error, crowd)
	for i := range crowd {
		mine := lock(t, b, fmt.Sprintf("own %d", i))
		_ = mine    // it ends with its client
		go func() { // ends with Close
			_, err := b.Lock(t.Context(), "held")
			got <- err
		}()
	}
	until(t, patience, func() error {
		return want(ops.one("SELECT count(*) > 0 FROM pg_locks l JOIN %s_waits w USING (pid) WHERE NOT l.granted",
			table), "t")
	})
	begin := time.Now()
	if err := b.Close(); err != nil {
		t.Errorf("close: %v", err)
	}
	// it is little more than a second unless the machine stands still
	if took := time.Since(begin); took > 10*time.Second {
		t.Errorf("close took %v", took)
	}
	for range crowd {
		if err := <-got; !errors.Is(err, interlock.ErrClosed) {
			t.Errorf("a wait that Close has ended says %v", err)
		}
	}
	until(t, patience, func() error {
		return want(ops.one("SELECT count(*) FROM pg_stat_activity WHERE application_name = 'interlock closing'"), "0")
	})
	until(t, patience, func() error {
		if now := runtime.NumGoroutine(); now > before {
			return fmt.Errorf("%d goroutines, %d before", now, before)
		}
		return nil
	})
	unlock(t, l)
}

func TestCrowd_OfManyClients_IsServedOneByOne(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	const clients, goroutines, turns = 8, 20, 3
	var inside, count atomic.Int32
	var last uint64 // guarded by the lock itself
	var mu sync.Mutex
	var all sync.WaitGroup
	for range clients {
		c := client(t, n.Addr(), "&table="+table+"&shared=2&waits=2", 30*time.Second)
		for range goroutines {
			all.Go(func() {
				for range turns {
					err := c.Do(t.Context(), "x", func(ctx context.Context) error {
						if inside.Add(1) != 1 {
							t.Error("two are inside")
						}
						count.Add(1)
						inside.Add(-1)
						return nil
					})
					if err != nil {
						t.Error(err)
						return
					}
				}
			})
		}
		all.Go(func() {
			l, err := c.Lock(t.Context(), "x")
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock() // for the race detector, which does not know of the lock under test
			if l.Token() <= last {
				t.Errorf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
			mu.Unlock()
			if err := l.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if got := count.Load(); got != clients*goroutines*turns {
		t.Errorf("%d turns, want %d", got, clients*goroutines*turns)
	}
}

// A hundred requests of one driver wait for one lock, most of them without a connection of their own.
func TestCrowd_BeyondTheConnections_IsServed(t *testing.T) {
	n := sharedServer(t)
	table := ownTable()
	o := Options{Table: table, Waits: 3, Shared: 2, Timeout: 5 * time.Second}
	d := open(t.Context(), t, n.Addr(), o)
	defer func() { _ = d.Close() }()
	first := request("x", "first")
	acquire(t, d, first)
	const crowd = 100
	var told atomic.Int32
	var all sync.WaitGroup
	for i := range crowd {
		r := request("x", fmt.Sprint(i))
		var once sync.Once
		r.Waiting = func(*interlock.HeldError) { once.Do(func() { told.Add(1) }) }
		all.Go(func() {
			if _, err := d.Acquire(t.Context(), r); err != nil {
				t.Error(err)
				return
			}
			release(t, d, r)
		})
	}
	until(t, patience, func() error { return want(fmt.Sprint(told.Load()), fmt.Sprint(crowd)) })
	if open := d.core.Connections(); open > o.Shared+o.Waits {
		t.Errorf("%d connections, want %d at most", open, o.Shared+o.Waits)
	}
	release(t, d, first)
	all.Wait()
}

func TestManyHeldLocks_NeedFewConnections(t *testing.T) {
	n := sharedServer(t)
	c := client(t, n.Addr(), "&table="+ownTable(), 30*time.Second)
	ops := newAdmin(t, n)
	const many = 2000
	leases := make([]*interlock.Lease, many)
	var all sync.WaitGroup
	for part := range 8 {
		all.Go(func() {
			for i := part; i < many; i += 8 {
				l, err := c.Lock(t.Context(), fmt.Sprintf("lock %d", i))
				if err != nil {
					t.Error(err)
					return
				}
				leases[i] = l
			}
		})
	}
	all.Wait()
	if t.Failed() {
		return
	}
	// One that has not answered for two seconds, in which the machine may stand still, has a successor.
	const most = 2 * defaultShared
	until(t, patience, func() error { // sessions of the tests before may have been about to end
		got := ops.number("SELECT count(DISTINCT pid) FROM pg_locks WHERE locktype = 'advisory' AND granted")
		if got > most {
			return fmt.Errorf("%d locks are held by %d sessions, want %d at most", many, got, most)
		}
		return nil
	})
	for part := range 8 {
		all.Go(func() {
			for i := part; i < many; i += 8 {
				if err := leases[i].Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
}
