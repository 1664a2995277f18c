package main

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

// The bounds on what a crowd behind one writer does to the server and to others.
const (
	longestRun = 5 * time.Millisecond
	longestP99 = 20 * time.Millisecond
	sharers    = 8 // clients of the crowd
)

// readers has n readers of 8 clients wait for a writer, and hold together for a while when it has gone.
func readers(n int) func(ctx context.Context, b *bench) (result, error) {
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
func permits(n int) func(ctx context.Context, b *bench) (result, error) {
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

func crowd(n int, first, each acquire) func(ctx context.Context, b *bench) (result, error) {
	return func(ctx context.Context, b *bench) (result, error) {
		clients, err := b.open(ctx, sharers+2)
		if err != nil {
			return result{}, err
		}
		bystander := clients[sharers+1]
		all, err := first(ctx, clients[sharers])
		if err != nil {
			return result{}, err
		}
		stop, pairs := make(chan struct{}), make(chan []time.Duration, 1)
		go func() { pairs <- pairsUntil(ctx, bystander, stop) }()

		var in, out sync.WaitGroup
		var lost, failed atomic.Int64
		leave := make(chan struct{})
		for i := range n {
			in.Add(1)
			out.Go(func() {
				l, err := each(ctx, clients[i%sharers])
				in.Done()
				if err != nil {
					failed.Add(1)
					return
				}
				<-leave
				if err := l.Unlock(ctx); errors.Is(err, interlock.ErrLost) {
					lost.Add(1)
				} else if err != nil {
					failed.Add(1)
				}
			})
		}
		if err := b.queued(ctx, n); err != nil {
			return result{}, err
		}
		time.Sleep(waits)
		begin := time.Now()
		if err := all.Unlock(ctx); err != nil {
			return result{}, err
		}
		unlocked := time.Since(begin)
		in.Wait()
		took := time.Since(begin)
		time.Sleep(stays)
		close(leave)
		out.Wait()
		close(stop)
		p99, most := percentile(<-pairs)
		slow, err := b.slowest(ctx)
		return result{
			got: fmt.Sprintf("%d lost, %d failed; all in after %v, the first's unlock %v; longest script %v; another lock's pair p99 %v, longest %v",
				lost.Load(), failed.Load(), took.Round(time.Millisecond), unlocked.Round(10*time.Microsecond), slow, p99, most),
			kept: lost.Load()+failed.Load() == 0 && slow <= longestRun && p99 <= longestP99,
		}, err
	}
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
