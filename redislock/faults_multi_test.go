package redislock_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// eight are names of one slot.
func eight() (names []string) {
	for i := range 8 {
		names = append(names, fmt.Sprintf("{order-7}:part-%d", i))
	}
	return names
}

func mustLockAll(t testing.TB, c *interlock.Client, names []string) *interlock.MultiLease {
	t.Helper()
	l, err := c.Multi(names, nil).Lock(patient(t))
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// TestMulti_OfEightLocks_IsOneRequest. They are given back side by side, by one request each at most: those that come
// together share one, but in a Cluster.
func TestMulti_OfEightLocks_IsOneRequest(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	alone, cluster := servers.RedisServer(t, nil), servers.RedisCluster(t, 3, 0, nil)
	letters := []string{"a", "b", "c", "d", "e", "f", "g", "h"}
	for name, row := range map[string]struct {
		url       string
		nodes     []*servers.RedisNode
		names     []string
		take      int
		giveLeast int
	}{
		"OnOneServer":               {redisURL("redis", alone.Addr()), []*servers.RedisNode{alone}, letters, 1, 1},
		"OnACluster_WithAHashTag":   {clusterURL(cluster), cluster.Nodes(), eight(), 1, 8},
		"OnACluster_InSeveralSlots": {clusterURL(cluster), cluster.Nodes(), letters, 8, 8},
	} {
		t.Run(name, func(t *testing.T) {
			c := openLocks(t, row.url, nil)
			count := func() (n int) {
				for _, node := range row.nodes {
					n += scriptsRun(t, node)
				}
				return n
			}
			for _, name := range row.names { // so that every server knows the scripts that are run for one lock
				mustUnlock(t, mustLock(t, c, name))
			}
			var took, gave int
			for range 2 { // the first time it is told those for several
				before := count()
				l := mustLockAll(t, c, row.names)
				took = count() - before
				if err := l.Unlock(patient(t)); err != nil {
					t.Fatal(err)
				}
				gave = count() - before - took
			}
			if took != row.take || gave < row.giveLeast || gave > 8 {
				t.Errorf("%d scripts took 8 locks and %d gave them back, want %d, and %d to 8",
					took, gave, row.take, row.giveLeast)
			}
		})
	}
	noneLeft(t, append(cluster.Nodes(), alone)...)
}

// TestMulti_ThatIsRefused_LeavesNothing on the server, whichever lock was in the way: no hold, no place in a queue, and
// of what it has read not even a change.
func TestMulti_ThatIsRefused_LeavesNothing(t *testing.T) {
	s := servers.RedisServer(t, nil)
	c, other := openLocks(t, redisURL("redis", s.Addr()), nil), openLocks(t, redisURL("redis", s.Addr()), nil)
	for _, name := range eight() {
		l := mustLock(t, other, name)
		before := leftOver(t, s)
		var held *interlock.HeldError
		if _, err := c.Multi(eight(), nil).TryLock(patient(t)); !errors.As(err, &held) || held.Name != name ||
			held.Token != l.Token() {
			t.Errorf("%q is held: %v", name, err)
		}
		if after := leftOver(t, s); !slices.Equal(after, before) || len(after) != 1 {
			t.Errorf("%q is held; there was %v, and then %v", name, before, after)
		}
		mustUnlock(t, l)
	}
	noneLeft(t, s)
}

// TestMulti_WhoseReplyNeverComes_LeavesNothing: the server has done it, and nobody is told.
func TestMulti_WhoseReplyNeverComes_LeavesNothing(t *testing.T) {
	s := servers.RedisServer(t, nil)
	p := servers.NewProxy(t, s.Addr())
	c := openLocks(t, redisURL("redis", p.Addr()), nil)
	for name, cut := range map[string]func(){
		"Dropped": p.DropReplies, "Held": func() { p.BlackHole(servers.ToClient) },
	} {
		t.Run(name, func(t *testing.T) {
			if err := mustLockAll(t, c, eight()).Unlock(patient(t)); err != nil {
				t.Fatal(err)
			}
			cut()
			ctx, cancel := context.WithCancel(patient(t))
			failed := make(chan error, 1)
			go func() { // ends with ctx
				_, err := c.Multi(eight(), nil).Lock(ctx)
				failed <- err
			}()
			soon(t, "all are held", func() bool { return len(leftOver(t, s)) == 8 })
			cancel()
			if err := receive(t, "the end of Lock", failed); !errors.Is(err, context.Canceled) ||
				!errors.Is(err, interlock.ErrUnavailable) {
				t.Errorf("got %v", err)
			}
			p.Pass()
			p.Reset()
			noneLeft(t, s)
			if err := mustLockAll(t, c, eight()).Unlock(patient(t)); err != nil {
				t.Fatal(err)
			}
		})
	}
}

// TestMulti_InOppositeOrders_IsNeverPartial: by goroutines of two clients, which mostly find one another in the
// way and then wait in order.
func TestMulti_InOppositeOrders_IsNeverPartial(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	s := servers.RedisServer(t, nil)
	names := eight()[:4]
	var locks []*locktest.Inside
	for _, name := range names {
		locks = append(locks, locktest.NewInside(t, name))
	}
	clients := []*interlock.Client{
		openLocks(t, redisURL("redis", s.Addr()), nil), openLocks(t, redisURL("redis", s.Addr()), nil),
	}
	var all sync.WaitGroup
	for n := range 12 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(n)))
			names := slices.Clone(names)
			if n%4 > 1 {
				slices.Reverse(names)
			}
			m := clients[n%2].Multi(names, nil)
			for range 20 {
				take := m.Lock
				if random.IntN(3) == 0 {
					take = m.TryLock
				}
				l, err := take(patient(t))
				if errors.Is(err, interlock.ErrHeld) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				if got := len(l.Leases()); got != len(names) {
					t.Errorf("%d leases", got)
				}
				for _, lease := range l.Leases() {
					its := func(w *locktest.Inside) bool { return w.Name == lease.Name() }
					locks[slices.IndexFunc(locks, its)].Enter(lease)
				}
				if err := l.Unlock(patient(t)); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	for _, w := range locks {
		if w.Entries() == 0 || w.Entries() != locks[0].Entries() {
			t.Errorf("%q: %d entries, of %q %d", w.Name, w.Entries(), locks[0].Name, locks[0].Entries())
		}
	}
	noneLeft(t, s)
}

// BenchmarkMulti_OfEight compares eight locks in one step with eight that are taken one after the other, over a network
// of 1 ms for the way there and back.
func BenchmarkMulti_OfEight(b *testing.B) {
	s := servers.RedisServer(b, nil)
	p := servers.NewProxy(b, s.Addr())
	c := openLocks(b, redisURL("redis", p.Addr()), nil)
	p.Delay(servers.BothWays, time.Millisecond/2)
	b.Run("in one step", func(b *testing.B) {
		for b.Loop() {
			if err := mustLockAll(b, c, eight()).Unlock(b.Context()); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("one after the other", func(b *testing.B) {
		for b.Loop() {
			var leases []*interlock.Lease
			for _, name := range eight() {
				leases = append(leases, mustLock(b, c, name))
			}
			for _, l := range leases {
				mustUnlock(b, l)
			}
		}
	})
}
