package zklock

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/go-zookeeper/zk"
	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/servers"
)

// What a lock costs, beside the recipe that comes with the client library.

func BenchmarkUncontended(b *testing.B) {
	n := sharedServer(b)
	b.Run("interlock", func(b *testing.B) {
		c := openLocks(b, urlOf(freshRoot(), n.Addr()), &interlock.Options{LocalHandoffs: -1})
		mustUnlock(b, mustLock(b, c, "lock"))
		for b.Loop() {
			l, err := c.Lock(b.Context(), "lock")
			if err == nil {
				err = l.Unlock(b.Context())
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("zk.Lock", func(b *testing.B) {
		a := newAdmin(b, n.Addr())
		l := zk.NewLock(a.Conn, freshRoot(), zk.WorldACL(zk.PermAll))
		for b.Loop() {
			err := l.Lock()
			if err == nil {
				err = l.Unlock()
			}
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}

// BenchmarkHandOff has two clients who always both want the lock: each acquisition is a hand-off from the other.
func BenchmarkHandOff(b *testing.B) {
	n := sharedServer(b)
	b.Run("interlock", func(b *testing.B) {
		url := urlOf(freshRoot(), n.Addr())
		var turns []func() (func() error, error)
		for range 2 {
			c := openLocks(b, url, &interlock.Options{LocalHandoffs: -1})
			turns = append(turns, func() (func() error, error) {
				l, err := c.Lock(b.Context(), "lock")
				if err != nil {
					return nil, err
				}
				return func() error { return l.Unlock(b.Context()) }, nil
			})
		}
		handOff(b, turns)
	})
	b.Run("zk.Lock", func(b *testing.B) {
		root := freshRoot()
		var turns []func() (func() error, error)
		for range 2 {
			l := zk.NewLock(newAdmin(b, n.Addr()).Conn, root, zk.WorldACL(zk.PermAll))
			turns = append(turns, func() (func() error, error) { return l.Unlock, l.Lock() })
		}
		handOff(b, turns)
	})
}

// handOff reports how long it is from the call of an unlock to the return of the other's lock.
func handOff(b *testing.B, turns []func() (func() error, error)) {
	var all sync.WaitGroup
	var mu sync.Mutex // guards what follows
	var sum time.Duration
	var count int
	var left time.Time
	rounds := b.N
	b.ResetTimer()
	for _, take := range turns {
		all.Go(func() {
			for range rounds {
				unlock, err := take()
				if err != nil {
					b.Error(err)
					return
				}
				mu.Lock()
				if !left.IsZero() {
					sum += time.Since(left)
					count++
				}
				mu.Unlock()
				<-time.After(time.Millisecond) // so that the other is queued
				mu.Lock()
				left = time.Now()
				mu.Unlock()
				if err := unlock(); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	all.Wait()
	b.ReportMetric(float64(sum.Microseconds())/float64(count), "µs/hand-off")
}

// BenchmarkSignOfLife is the price of the transaction by which each client proves its session once in a third of the
// timeout, at an ensemble that waits for its disks, beside the sync that proves nothing.
func BenchmarkSignOfLife(b *testing.B) {
	o := options()
	o.Properties["zookeeper.forceSync"] = "yes"
	d := open(b, servers.NewZooKeeperEnsemble(b, o).Addrs(), &Options{Root: freshRoot()})
	l, err := d.ready(b.Context(), nil, reach, false)
	if err != nil {
		b.Fatal(err)
	}
	sync := func(ctx context.Context) error {
		_, err := ask(ctx, l, func(c *zk.Conn) (string, error) { return c.Sync(l.node) })
		return err
	}
	for name, request := range map[string]func(context.Context) error{"transaction": l.agree, "sync": sync} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				if err := request(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
		// As many clients would.
		b.Run(name+"-of-many", func(b *testing.B) {
			b.SetParallelism(32)
			b.RunParallel(func(pb *testing.PB) {
				for pb.Next() {
					if err := request(b.Context()); err != nil {
						b.Error(err)
						return
					}
				}
			})
		})
	}
}
