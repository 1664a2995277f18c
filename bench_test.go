package interlock

import (
	"sync"
	"testing"

	"github.com/interlock-go/interlock/memlock"
)

// What the core costs by itself, on an engine that costs next to nothing. bench/ compares engines and libraries.

func BenchmarkUncontended(b *testing.B) {
	c := benchClient(b)
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
	c := benchClient(b)
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

func benchClient(b *testing.B) *Client {
	b.Helper()
	d := memlock.New(nil)
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
