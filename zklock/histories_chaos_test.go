package zklock

import (
	"context"
	"flag"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/locktest"
	"github.com/interlock-go/interlock/internal/servers"
)

var (
	chaosSeed = flag.Uint64("chaos.seed", 0, "replay the faults with this seed (the schedule is the machine's)")
	chaosTime = flag.Duration("chaos.time", 2*time.Second, "how long the faults last")
)

// Whatever the network does, no two are inside, tokens grow, nothing stays behind, and all goes on afterwards.
func TestChaos_OfConnections(t *testing.T) {
	t.Parallel()
	seed := *chaosSeed
	if seed == 0 {
		seed = rand.Uint64()
	}
	t.Logf("seed %d", seed)
	n, root := sharedServer(t), freshRoot()
	a := newAdmin(t, n.Addr())
	w := locktest.NewInside(t, "lock")
	ctx, stop := context.WithTimeout(context.Background(), *chaosTime+patience)
	defer stop()
	var all sync.WaitGroup
	all.Go(func() {
		<-time.After(*chaosTime)
		for ctx.Err() == nil && w.Entries() < 10 { // the machine may stand still
			<-time.After(10 * time.Millisecond)
		}
		stop()
	})
	for i := range uint64(4) {
		random := rand.New(rand.NewPCG(seed, i))
		p := servers.NewProxy(t, n.Addr())
		c := openLocks(t, urlOf(root, p.Addr()), leased(time.Second))
		all.Go(func() { chaos(ctx, random, p) })
		for range 2 {
			all.Go(func() {
				for ctx.Err() == nil {
					l, err := c.Lock(ctx, "lock")
					if err != nil {
						continue // no server, or the end
					}
					w.Enter(l)
					<-time.After(time.Millisecond)
					_ = l.Unlock(ctx) // it may be lost, or not be answered
				}
			})
		}
	}
	all.Wait()
	l := mustLock(t, openLocks(t, urlOf(root, n.Addr()), nil), "lock")
	w.Enter(l)
	mustUnlock(t, l)
	soon(t, "nothing to be left", func() bool { return len(a.nodes(root+"/mutex/lock")) == 0 })
	t.Logf("%d were inside", w.Entries())
	if w.Entries() < 10 {
		t.Errorf("only %d were inside", w.Entries())
	}
}

// chaos does to a network what networks do, until ctx ends.
func chaos(ctx context.Context, random *rand.Rand, p *servers.Proxy) {
	pause := func(most time.Duration) {
		select {
		case <-time.After(time.Duration(random.Int64N(int64(most)))):
		case <-ctx.Done():
		}
	}
	for ctx.Err() == nil {
		pause(150 * time.Millisecond)
		switch random.IntN(6) {
		case 0:
			p.Reset()
		case 1: // the request arrives and its reply does not
			p.DropReplies()
			pause(20 * time.Millisecond)
			p.Reset()
		case 2: // the request is kept, and arrives after the next connection was made
			p.BlackHole(servers.ToServer)
			pause(40 * time.Millisecond)
		case 3:
			p.BlackHole(servers.BothWays)
			pause(400 * time.Millisecond)
		case 4: // longer than the session lasts
			if random.IntN(4) == 0 {
				p.BlackHole(servers.BothWays)
				pause(2 * time.Second)
			}
		case 5:
			p.Delay(servers.BothWays, time.Duration(random.Int64N(int64(10*time.Millisecond))))
			pause(100 * time.Millisecond)
		}
		p.Pass()
	}
	p.Pass()
}
