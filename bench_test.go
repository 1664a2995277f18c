package interlock

import (
	"context"
	"strconv"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// What the core costs by itself, on an engine that costs next to nothing. bench/ compares engines and libraries.

func BenchmarkUncontended(b *testing.B) { benchUncontended(b, memlock.New(nil)) }

// BenchmarkUncontended_WithoutAnEngine is the core alone.
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

// BenchmarkWithOwner is what it costs to name an owner anew for each request.
func BenchmarkWithOwner(b *testing.B) {
	b.ReportAllocs()
	for i := 0; b.Loop(); i++ {
		_ = WithOwner(b.Context(), strconv.Itoa(i))
	}
}
