package interlock

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/memlock"
)

// The cost of the core by itself, on an engine that costs next to nothing. bench/ compares engines and libraries.

func BenchmarkUncontended(b *testing.B) { benchUncontended(b, memlock.New(nil)) }

// BenchmarkUncontended_WithoutAnEngine measures the core alone: the engine grants everything and remembers nothing.
func BenchmarkUncontended_WithoutAnEngine(b *testing.B) { benchUncontended(b, &yes{}) }

// yes is a local engine that grants everything and remembers nothing.
type yes struct{ token atomic.Uint64 }

func (*yes) Traits() driver.Traits {
	return driver.Traits{Engine: "none", Lifetime: driver.Process, Local: true, Kinds: []driver.Kind{driver.KindMutex}}
}

func (y *yes) Acquire(_ context.Context, r *driver.Request) (driver.Grant, error) {
	return driver.Grant{Token: y.token.Add(1), Tokens: 1, Nonce: r.ID}, nil
}

func (*yes) Release(context.Context, *driver.Release) error { return nil }

func (*yes) Close() error { return nil }

func benchUncontended(b *testing.B, d driver.Driver) {
	b.Helper()
	c := benchClient(b, d)
	b.ReportAllocs()
	for b.Loop() {
		l, err := c.Lock(b.Context(), "a")
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Unlock(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkRetained measures the lock and unlock of a lock that the client retains: the engine is not asked.
func BenchmarkRetained(b *testing.B) {
	m := benchClient(b, memlock.New(nil)).Mutex("a", &LockOptions{Retain: time.Minute})
	b.ReportAllocs()
	for b.Loop() {
		l, err := m.Lock(b.Context())
		if err != nil {
			b.Fatal(err)
		}
		if err := l.Unlock(b.Context()); err != nil {
			b.Fatal(err)
		}
	}
}

func BenchmarkContended256(b *testing.B) {
	c := benchClient(b, memlock.New(nil))
	b.ReportAllocs()
	var all sync.WaitGroup
	work := make(chan struct{}, b.N)
	for range b.N {
		work <- struct{}{}
	}
	close(work)
	b.ResetTimer()
	for range 256 {
		all.Go(func() {
			for range work {
				l, err := c.Lock(b.Context(), "a")
				if err != nil {
					b.Error(err)
					return
				}
				_ = l.Unlock(b.Context())
			}
		})
	}
	all.Wait()
}

func benchClient(b *testing.B, d driver.Driver) *Client {
	b.Helper()
	c, err := New(d, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() {
		_ = c.Close()
		_ = d.Close()
	})
	return c
}

// BenchmarkWithOwner measures what it costs to name an owner anew for each request.
func BenchmarkWithOwner(b *testing.B) {
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = WithOwner(b.Context(), strconv.Itoa(i))
	}
}

// BenchmarkOneOwner measures a lock and unlock of an owner that holds that many other locks, which must not matter. The
// engine costs nothing, so the cost is the core's.
func BenchmarkOneOwner(b *testing.B) {
	for _, holds := range []int{10, 100, 1000, 10_000, 20_000} {
		b.Run(strconv.Itoa(holds), func(b *testing.B) {
			c := benchClient(b, &yes{})
			ctx := WithOwner(b.Context(), "bench")
			for i := range holds {
				if _, err := c.Lock(ctx, "held "+strconv.Itoa(i)); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportAllocs()
			for b.Loop() {
				l, err := c.Lock(ctx, "a")
				if err != nil {
					b.Fatal(err)
				}
				if err := l.Unlock(b.Context()); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// BenchmarkMulti measures a Multi of that many names, per name. It also reports how long another lock of the same
// client takes at most meanwhile.
func BenchmarkMulti(b *testing.B) {
	for _, size := range []int{10, 100, 1000, 10_000, 20_000} {
		b.Run(strconv.Itoa(size), func(b *testing.B) {
			c := benchClient(b, memlock.New(nil))
			names := make([]string, size)
			for i := range names {
				names[i] = "m" + strconv.Itoa(i)
			}
			most, stop := stall(b, c)
			for b.Loop() {
				if err := c.Multi(names, nil).Do(b.Context(), func(context.Context) error { return nil }); err != nil {
					b.Fatal(err)
				}
			}
			close(stop)
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*size), "ns/name")
			b.ReportMetric(float64((<-most).Microseconds()), "µs-stall")
		})
	}
}

// BenchmarkDeadlockSearch reports how long another lock of the client takes at most while that many owners wait, each
// of which holds something. The search looks at all of them each half second.
func BenchmarkDeadlockSearch(b *testing.B) {
	for _, waiting := range []int{100, 10_000} {
		b.Run(strconv.Itoa(waiting), func(b *testing.B) {
			c := benchClient(b, &yes{})
			ctx, cancel := context.WithCancel(b.Context())
			hot, err := c.Lock(ctx, "hot")
			if err != nil {
				b.Fatal(err)
			}
			var all sync.WaitGroup
			for i := range waiting {
				own, err := c.Lock(ctx, "own "+strconv.Itoa(i))
				if err != nil {
					b.Fatal(err)
				}
				all.Go(func() { _, _ = c.Lock(own.Context(ctx), "hot") }) // until cancel
			}
			most, stop := stall(b, c)
			for b.Loop() {
				time.Sleep(2 * shell.SearchAfter) // real: what is measured happens each half second
			}
			close(stop)
			b.ReportMetric(float64((<-most).Microseconds()), "µs-stall")
			cancel()
			all.Wait()
			_ = hot.Unlock(b.Context())
		})
	}
}

// BenchmarkContexts reports how long another lock of the client takes at most while that many contexts of one lease
// end, by their parent and by the Unlock.
func BenchmarkContexts(b *testing.B) {
	for _, size := range []int{100, 40_000} {
		for _, by := range []string{"parent", "Unlock"} {
			b.Run(by+"/"+strconv.Itoa(size), func(b *testing.B) {
				c := benchClient(b, &yes{})
				most, stop := stall(b, c)
				for b.Loop() {
					l, err := c.Lock(b.Context(), "a")
					if err != nil {
						b.Fatal(err)
					}
					parent, cancel := context.WithCancel(b.Context())
					for range size {
						_ = l.Context(parent)
					}
					if by == "parent" {
						cancel()
						for forgotten := false; !forgotten; { // by goroutines of their own
							c.in().Lock()
							forgotten = len(l.hold().Listeners.Contexts.All) == 0
							c.in().Unlock()
						}
					}
					_ = l.Unlock(b.Context())
					cancel()
				}
				close(stop)
				b.ReportMetric(float64((<-most).Microseconds()), "µs-stall")
			})
		}
	}
}

// stall takes and gives back a lock of c again and again until stop is closed, and then tells how long the longest try
// took.
func stall(b *testing.B, c *Client) (most chan time.Duration, stop chan struct{}) {
	b.Helper()
	most, stop = make(chan time.Duration, 1), make(chan struct{})
	go func() {
		var longest time.Duration
		for {
			select {
			case <-stop:
				most <- longest
				return
			default:
			}
			start := time.Now()
			l, err := c.Lock(b.Context(), "other")
			if err != nil {
				b.Error(err)
				most <- longest
				return
			}
			_ = l.Unlock(b.Context())
			longest = max(longest, time.Since(start))
		}
	}()
	return most, stop
}
