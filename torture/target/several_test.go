package target

import (
	"context"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
	_ "github.com/interlock-go/interlock/redislock/redlock"
	_ "github.com/interlock-go/interlock/zklock"
)

// A client that is given proxies in the place of several servers keeps to them: it hears nobody
// when they let nothing pass.
func TestSeveral_ClientsKeepToTheirProxies(t *testing.T) {
	for _, g := range several() {
		if !g.Can(Cut) || g.Tells {
			continue
		}
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			i := g.Start(t, nil)
			var proxies []*servers.Proxy
			var addrs []string
			for _, addr := range i.Addrs {
				p := servers.NewProxy(t, addr)
				proxies, addrs = append(proxies, p), append(addrs, p.Addr())
			}
			near, far := open(t, i.Direct()), open(t, i.URL(addrs))
			lock(t, far, "x")
			for _, p := range proxies {
				p.BlackHole(servers.BothWays)
			}
			lock(t, near, "y")
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if l, err := far.Lock(ctx, "z"); err == nil {
				t.Errorf("it got %v through the dark", l)
			}
			for _, p := range proxies {
				p.Pass()
			}
			lock(t, far, "z")
		})
	}
}

// A leader or primary that hands its office over takes no lock with it, where the engine promises that.
func TestSeveral_AHoldOutlastsALeaderThatMoves(t *testing.T) {
	longrun.Only(t)
	for _, g := range several() {
		if !g.Can(LeaderMove) || g.Broken[LeaderMove] != "" {
			continue
		}
		t.Run(g.Name, func(t *testing.T) {
			t.Parallel()
			i := g.Start(t, nil)
			held, err := openWith(t, i.Direct(), time.Minute).Lock(t.Context(), "x")
			if err != nil {
				t.Fatal(err)
			}
			for range 3 {
				if err := i.Injections[LeaderMove](t.Context(), rand.New(rand.NewPCG(1, 1)), time.Second); err != nil {
					t.Error(err)
				}
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			defer cancel()
			if l, err := open(t, i.Direct()).Lock(ctx, "x"); err == nil {
				t.Errorf("%v is granted beside %v", l, held)
			}
			if err := held.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		})
	}
}

// A replica that takes over with a clock that is an hour ahead ends all leases; one that is behind ends none.
func TestSentinel_AHold_WhenAReplicaTakesOverWhoseClockIsWrong(t *testing.T) {
	g, err := Find("redis-sentinel-acked")
	if err != nil {
		t.Fatal(err)
	}
	if why := g.Withheld(ClockFailover); why != nil {
		t.Skip(why)
	}
	for _, by := range []time.Duration{time.Hour, -time.Hour} {
		t.Run(by.String(), func(t *testing.T) {
			t.Parallel()
			i := g.Start(t, []Fault{ClockFailover})
			held, err := openWith(t, i.Direct(), 30*time.Minute).Lock(t.Context(), "x") // not renewed meanwhile
			if err != nil {
				t.Fatal(err)
			}
			if err := i.Injections[ClockFailover](t.Context(), diceThat(by), time.Second); err != nil {
				t.Fatal(err)
			}
			other := open(t, i.Direct())
			lock(t, other, "y") // it has found the new primary
			l, err := other.TryLock(t.Context(), "x")
			if free := err == nil; free != (by > 0) {
				t.Errorf("another one got %v, %v", l, err)
			}
			if err := held.Unlock(t.Context()); (err == nil) != (by < 0) {
				t.Errorf("the hold of before: %v", err)
			}
			if l != nil {
				lock(t, other, "y")
				if err := l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			}
		})
	}
}

// diceThat has a clock be wrong by so much.
func diceThat(by time.Duration) *rand.Rand {
	for seed := uint64(1); ; seed++ {
		if wrongBy(rand.New(rand.NewPCG(seed, 0))) == by {
			return rand.New(rand.NewPCG(seed, 0))
		}
	}
}

func open(t *testing.T, url string) *interlock.Client {
	t.Helper()
	// a session ends soon, and is tried anew
	locks, err := interlock.Open(t.Context(), url, &interlock.Options{Lease: 2 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := locks.Close(); err != nil {
			t.Error(err)
		}
	})
	return locks
}

// lock takes a lock and gives it back.
func lock(t *testing.T, locks *interlock.Client, name string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	l, err := locks.Lock(ctx, name)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.Unlock(ctx); err != nil {
		t.Fatal(err)
	}
}
