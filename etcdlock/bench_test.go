package etcdlock

import (
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/servers"
	clientv3 "go.etcd.io/etcd/client/v3"
	"go.etcd.io/etcd/client/v3/concurrency"
	"go.uber.org/zap"
)

// party takes a lock and returns what gives it back. waiting is closed, if it is not nil, when it waits.
type party func(b *testing.B, waiting chan<- struct{}) (release func())

// ours is a driver's mutex.
func ours(b *testing.B, addr string) party {
	d, err := driver.DefaultMux.Open(b.Context(), "etcd://"+addr, driver.Config{})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = d.Close() })
	key, n := driver.Key{Kind: driver.KindMutex, Name: b.Name()}, 0
	name := fmt.Sprintf("%p", d)
	return func(b *testing.B, waiting chan<- struct{}) func() {
		n++
		r := &driver.Request{Key: key, ID: fmt.Sprint(name, n), Tokens: 1, Weight: 1}
		r.Waiting = func(*driver.HeldError) { close(waiting) }
		if _, err := d.Acquire(b.Context(), r); err != nil {
			b.Fatal(err)
		}
		return func() {
			if err := d.Release(b.Context(), &driver.Release{Key: key, ID: r.ID}); err != nil {
				b.Fatal(err)
			}
		}
	}
}

// theirs is the mutex of etcd's own client library.
func theirs(b *testing.B, addr string) party {
	client, err := clientv3.New(clientv3.Config{Endpoints: []string{addr}, Logger: zap.NewNop()})
	if err != nil {
		b.Fatal(err)
	}
	s, err := concurrency.NewSession(client)
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close(); _ = client.Close() })
	m := concurrency.NewMutex(s, b.Name())
	return func(b *testing.B, _ chan<- struct{}) func() {
		if err := m.Lock(b.Context()); err != nil {
			b.Fatal(err)
		}
		return func() {
			if err := m.Unlock(context.WithoutCancel(b.Context())); err != nil {
				b.Fatal(err)
			}
		}
	}
}

var peers = []struct {
	name string
	open func(b *testing.B, addr string) party
}{{"interlock", ours}, {"concurrency.Mutex", theirs}}

func BenchmarkUncontended(b *testing.B) {
	addr := servers.Etcd(b)
	for _, p := range peers {
		b.Run(p.name, func(b *testing.B) {
			lock := p.open(b, addr)
			for b.Loop() {
				lock(b, nil)()
			}
		})
	}
}

// BenchmarkHandOff is the time from the call of the release to the return of the other's acquire, between two clients.
func BenchmarkHandOff(b *testing.B) {
	addr := servers.Etcd(b)
	for _, p := range peers {
		b.Run(p.name, func(b *testing.B) {
			parties := []party{p.open(b, addr), p.open(b, addr)}
			release := parties[0](b, nil)
			var total time.Duration
			i := 0
			for b.Loop() {
				i++
				in := make(chan func())
				var at time.Time
				waiting := make(chan struct{})
				go func() { // ends with the acquire
					next := parties[i%2](b, waiting)
					at = time.Now()
					in <- next
				}()
				select {
				case <-waiting:
					<-time.After(3 * time.Millisecond) // its watch has begun
				case <-time.After(10 * time.Millisecond): // who does not say that it waits
				}
				begin := time.Now()
				release()
				release = <-in
				total += at.Sub(begin)
			}
			release()
			b.ReportMetric(float64(total.Microseconds())/float64(i), "µs/hand-off")
		})
	}
}
