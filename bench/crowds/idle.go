package crowds

import (
	"context"
	"fmt"
	"time"
)

// idleObservers has n clients observe one election in which nothing happens.
func idleObservers(n int) func(ctx context.Context, b *bench) (Result, error) {
	return func(ctx context.Context, b *bench) (Result, error) {
		clients, err := b.open(ctx, n)
		if err != nil {
			return Result{}, err
		}
		if _, err := clients[0].Election("x", nil).Campaign(ctx, "leader"); err != nil {
			return Result{}, err
		}
		for _, c := range clients {
			go func() {
				for _, err := range c.Election("x", nil).Observe(ctx) {
					if err != nil {
						return
					}
				}
			}()
		}
		return b.idle(ctx)
	}
}

// idleLatchWaiters has n clients wait for a latch that nobody counts down.
func idleLatchWaiters(n int) func(ctx context.Context, b *bench) (Result, error) {
	return func(ctx context.Context, b *bench) (Result, error) {
		clients, err := b.open(ctx, n)
		if err != nil {
			return Result{}, err
		}
		if _, err := clients[0].Latch("x").Set(ctx, 1); err != nil {
			return Result{}, err
		}
		for _, c := range clients {
			go func() { _ = c.Latch("x").Wait(ctx) }()
		}
		return b.idle(ctx)
	}
}

// idleWaiters has n goroutines of some clients wait for permits of one semaphore, which one holder keeps.
func idleWaiters(n, of int) func(ctx context.Context, b *bench) (Result, error) {
	return func(ctx context.Context, b *bench) (Result, error) {
		clients, err := b.open(ctx, of+1)
		if err != nil {
			return Result{}, err
		}
		if _, err := clients[of].Semaphore("x", 1, nil).Acquire(ctx, 1); err != nil {
			return Result{}, err
		}
		for i := range n {
			go func() { _, _ = clients[i%of].Semaphore("x", 1, nil).Acquire(ctx, 1) }()
		}
		if err := b.queued(ctx, n); err != nil {
			return Result{}, err
		}
		return b.idle(ctx)
	}
}

// apartWaiters has n clients wait, each for a lock of its own.
func apartWaiters(n int) func(ctx context.Context, b *bench) (Result, error) {
	return func(ctx context.Context, b *bench) (Result, error) {
		clients, err := b.open(ctx, n+1)
		if err != nil {
			return Result{}, err
		}
		for i := range n {
			if _, err := clients[n].Lock(ctx, fmt.Sprint("x", i)); err != nil {
				return Result{}, err
			}
			go func() { _, _ = clients[i].Lock(ctx, fmt.Sprint("x", i)) }()
		}
		return b.idle(ctx)
	}
}

// idle measures while nothing happens but what keeps the waiters alive; and how an unrelated lock fares.
func (b *bench) idle(ctx context.Context) (r Result, err error) {
	time.Sleep(b.Settles)
	bystander, err := b.open(ctx, 1)
	if err != nil {
		return r, err
	}
	if r.Share, err = b.share(ctx, b.IdleFor); err != nil {
		return r, err
	}
	connections, err := b.connections(ctx)
	if err != nil {
		return r, err
	}
	stop, pairs := make(chan struct{}), make(chan []time.Duration, 1)
	go func() { pairs <- pairsUntil(ctx, bystander[0], stop) }() // ends with stop
	time.Sleep(2 * time.Second)
	close(stop)
	r.PairP99, r.PairLongest = percentile(<-pairs)
	if r.LongestRun, err = b.slowest(ctx); err != nil {
		return r, err
	}
	r.Silence, err = b.silence(ctx, connections)
	return r, err
}

// connections is how many the server has.
func (b *bench) connections(ctx context.Context) (n int, err error) {
	info, err := b.node.Info(ctx, "clients")
	if err != nil {
		return 0, err
	}
	_, err = fmt.Sscan(info["connected_clients"], &n)
	return n, err
}

// silence closes the clients, and returns what n connections cost the server that say nothing.
func (b *bench) silence(ctx context.Context, n int) (float64, error) {
	b.close()
	for range n {
		c, err := b.node.Dial(ctx)
		if err != nil {
			return 0, err
		}
		defer c.Close()
	}
	time.Sleep(b.Settles)
	return b.share(ctx, b.IdleFor)
}
