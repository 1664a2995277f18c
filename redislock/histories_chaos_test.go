package redislock_test

import (
	"context"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

// chaosTime is how long the network is bad, or for longer, if fewer than fewest have been in by
// then: a machine may be busy.
const (
	chaosTime = 4 * time.Second
	fewest    = 10
)

// Whatever the network does, by their own leases no two are inside at once, tokens grow, and when it is good again
// everybody gets in and nothing is left.
func TestBadNetwork_AtRandom_NeverAreTwoInside(t *testing.T) {
	for name, query := range map[string]string{"Pushes": "0", "WaitingForReplicas": "1"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			badNetwork(t, query)
		})
	}
}

func badNetwork(t *testing.T, replicas string) {
	s := servers.RedisReplicated(t, 1, nil)
	r := newRand(t)
	o := &interlock.Options{Lease: 300 * time.Millisecond, LocalHandoffTime: time.Millisecond}
	var proxies []*servers.Proxy
	var clients []*interlock.Client
	for range 5 {
		p := servers.NewProxy(t, s.Primary.Addr())
		proxies = append(proxies, p)
		url := withQuery(redisURL("redis", p.Addr()), "replicas", replicas)
		clients = append(clients, openLocks(t, url, o))
	}
	w := locktest.NewInside(t, "lock")
	ctx, cancel := context.WithTimeout(context.Background(), 15*chaosTime)
	defer cancel()
	var all sync.WaitGroup
	for i, c := range clients {
		for j := range 3 {
			own := rand.New(rand.NewPCG(r.Uint64(), uint64(i*3+j)))
			all.Go(func() {
				for ctx.Err() == nil {
					visit(ctx, c, w, own)
				}
			})
		}
	}
	all.Go(func() {
		defer cancel()
		for begin := time.Now(); ctx.Err() == nil && (time.Since(begin) < chaosTime || w.Entries() < fewest); {
			spoil(proxies[r.IntN(len(proxies))], r)
			<-time.After(time.Duration(r.Int64N(int64(60 * time.Millisecond))))
		}
	})
	all.Wait()
	t.Logf("%d times somebody was in", w.Entries())
	if w.Entries() < fewest {
		t.Errorf("only %d times somebody was in: that shows nothing", w.Entries())
	}
	for i, p := range proxies {
		p.Delay(servers.BothWays, 0)
		p.Pass()
		p.Reset() // what lost bytes stays mute
		soon(t, "each client to get in again", func() bool {
			short, cancel := context.WithTimeout(context.Background(), time.Second)
			defer cancel()
			l, err := clients[i].Lock(short, w.Name)
			if err != nil {
				return false
			}
			w.Enter(l)
			return l.Unlock(short) == nil
		})
	}
	noneLeft(t, s.Primary)
}

// visit tries to get in, stays for a while that may be longer than the lease, and leaves.
func visit(ctx context.Context, c *interlock.Client, w *locktest.Inside, r *rand.Rand) {
	short, cancel := context.WithTimeout(ctx, 50*time.Millisecond+time.Duration(r.Int64N(int64(time.Second))))
	defer cancel()
	l, err := c.Lock(short, w.Name)
	if err != nil {
		select {
		case <-time.After(5 * time.Millisecond):
		case <-ctx.Done():
		}
		return
	}
	w.Enter(l)
	select {
	case <-time.After(time.Duration(r.ExpFloat64() * float64(10*time.Millisecond))):
	case <-l.Lost():
	}
	_ = l.Unlock(short)
}

// spoil changes something about a network.
func spoil(p *servers.Proxy, r *rand.Rand) {
	way := []servers.Direction{servers.ToServer, servers.ToClient, servers.BothWays}[r.IntN(3)]
	switch r.IntN(20) {
	case 0:
		p.BlackHole(way)
	case 1, 2:
		p.Delay(way, time.Duration(r.Int64N(int64(250*time.Millisecond))))
	case 3:
		p.Reset()
	case 4:
		p.DropReplies()
	case 5:
		p.Refuse()
		p.Reset()
	default:
		p.Delay(servers.BothWays, 0)
		p.Pass()
		if r.IntN(4) == 0 {
			p.Reset()
		}
	}
}
