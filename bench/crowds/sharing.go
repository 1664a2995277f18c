package crowds

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock"
)

const sharers = 8 // clients of the crowd

// readers has n readers of 8 clients wait for a writer, and hold together for a while when it has gone.
func readers(n int) func(ctx context.Context, b *bench) (Result, error) {
	return crowd(n,
		func(ctx context.Context, c *interlock.Client) (*interlock.Lease, error) {
			return c.RWMutex("x", nil).Lock(ctx)
		},
		func(ctx context.Context, c *interlock.Client) (*interlock.Lease, error) {
			return c.RWMutex("x", nil).RLock(ctx)
		},
	)
}

// permits has n who want one permit wait for one who has them all.
func permits(n int) func(ctx context.Context, b *bench) (Result, error) {
	return crowd(n,
		func(ctx context.Context, c *interlock.Client) (*interlock.Lease, error) {
			return c.Semaphore("x", n, nil).Acquire(ctx, n)
		},
		func(ctx context.Context, c *interlock.Client) (*interlock.Lease, error) {
			return c.Semaphore("x", n, nil).Acquire(ctx, 1)
		},
	)
}

type acquire func(ctx context.Context, c *interlock.Client) (*interlock.Lease, error)

// crowd has n goroutines wait behind one, lets them in, has them stay together for a while, and sends them away.
func crowd(n int, first, each acquire) func(ctx context.Context, b *bench) (Result, error) {
	return func(ctx context.Context, b *bench) (r Result, err error) {
		clients, err := b.open(ctx, sharers+2)
		if err != nil {
			return r, err
		}
		all, err := first(ctx, clients[sharers])
		if err != nil {
			return r, err
		}
		stop, pairs := make(chan struct{}), make(chan []time.Duration, 1)
		go func() { pairs <- pairsUntil(ctx, clients[sharers+1], stop) }() // ends with stop
		g := gather(ctx, n, clients[:sharers], each)
		if err := b.queued(ctx, n); err != nil {
			return r, err
		}
		time.Sleep(b.Waits)
		begin := time.Now()
		if err := all.Unlock(ctx); err != nil {
			return r, err
		}
		r.FirstUnlock = time.Since(begin)
		g.in.Wait()
		r.AllIn = time.Since(begin)
		time.Sleep(b.Stays)
		close(g.leave)
		g.out.Wait()
		close(stop)
		r.Lost, r.Failed = int(g.lost.Load()), int(g.failed.Load())
		r.PairP99, r.PairLongest = percentile(<-pairs)
		r.LongestRun, err = b.slowest(ctx)
		return r, err
	}
}

// gathering is goroutines that have a lock together until they are to leave.
type gathering struct {
	in, out      sync.WaitGroup
	lost, failed atomic.Int64
	leave        chan struct{}
}

func gather(ctx context.Context, n int, clients []*interlock.Client, each acquire) *gathering {
	g := &gathering{leave: make(chan struct{})}
	for i := range n {
		g.in.Add(1)
		g.out.Go(func() {
			l, err := each(ctx, clients[i%len(clients)])
			g.in.Done()
			if err != nil {
				g.failed.Add(1)
				return
			}
			<-g.leave
			if err := l.Unlock(ctx); errors.Is(err, interlock.ErrLost) {
				g.lost.Add(1)
			} else if err != nil {
				g.failed.Add(1)
			}
		})
	}
	return g
}

// queued waits until the lock that everybody wants has n waiters.
func (b *bench) queued(ctx context.Context, n int) error {
	conn, err := b.node.Dial(ctx)
	if err != nil {
		return err
	}
	defer conn.Close()
	for {
		for _, key := range []string{"interlock:rw:x", "interlock:sem:x"} {
			z, err := conn.Do(ctx, "HGET", key, "z")
			if err != nil {
				return err
			}
			if fmt.Sprint(z) == fmt.Sprint(n) {
				return nil
			}
		}
		time.Sleep(20 * time.Millisecond)
	}
}

// pairsUntil takes and releases another lock until stop, and says how long each time took.
func pairsUntil(ctx context.Context, c *interlock.Client, stop <-chan struct{}) (took []time.Duration) {
	for {
		select {
		case <-stop:
			return took
		case <-time.After(2 * time.Millisecond):
		}
		begin := time.Now()
		l, err := c.Lock(ctx, "another")
		if err == nil {
			err = l.Unlock(ctx)
		}
		if err != nil {
			return append(took, time.Hour)
		}
		took = append(took, time.Since(begin))
	}
}

func percentile(took []time.Duration) (p99, most time.Duration) {
	slices.Sort(took)
	return took[len(took)*99/100].Round(10 * time.Microsecond), took[len(took)-1].Round(10 * time.Microsecond)
}
