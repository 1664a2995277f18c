package main

import (
	"context"
	"fmt"
	"time"
)

// The bounds on what those who do nothing cost beyond their connections, as parts of one processor.
const (
	mostWatching = 0.02
	mostWaiting  = 0.05
)

// How long a row takes, shortened by its test.
var (
	settles = 10 * time.Second // until nothing happens any more
	idleFor = 30 * time.Second
	stays   = 12 * time.Second // who shares a lock, so that each hold is renewed
	waits   = 5 * time.Second  // who waits for it, so that each is heard of
)

// idleObservers has n clients observe one election in which nothing happens.
func idleObservers(n int) func(ctx context.Context, b *bench) (result, error) {
	return func(ctx context.Context, b *bench) (result, error) {
		clients, err := b.open(ctx, n)
		if err != nil {
			return result{}, err
		}
		if _, err := clients[0].Election("x", nil).Campaign(ctx, "leader"); err != nil {
			return result{}, err
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
		return b.idle(ctx, mostWatching)
	}
}

// idleLatchWaiters has n clients wait for a latch that nobody counts down.
func idleLatchWaiters(n int) func(ctx context.Context, b *bench) (result, error) {
	return func(ctx context.Context, b *bench) (result, error) {
		clients, err := b.open(ctx, n)
		if err != nil {
			return result{}, err
		}
		if _, err := clients[0].Latch("x").Set(ctx, 1); err != nil {
			return result{}, err
		}
		for _, c := range clients {
			go func() { _ = c.Latch("x").Wait(ctx) }()
		}
		return b.idle(ctx, mostWatching)
	}
}

// idleWaiters has n goroutines of some clients wait for permits of one semaphore, which one holder keeps.
func idleWaiters(n, of int) func(ctx context.Context, b *bench) (result, error) {
	return func(ctx context.Context, b *bench) (result, error) {
		clients, err := b.open(ctx, of+1)
		if err != nil {
			return result{}, err
		}
		if _, err := clients[of].Semaphore("x", 1, nil).Acquire(ctx, 1); err != nil {
			return result{}, err
		}
		for i := range n {
			go func() { _, _ = clients[i%of].Semaphore("x", 1, nil).Acquire(ctx, 1) }()
		}
		if err := b.queued(ctx, n); err != nil {
			return result{}, err
		}
		return b.idle(ctx, mostWaiting)
	}
}

// apartWaiters has n clients wait, each for a lock of its own.
func apartWaiters(n int) func(ctx context.Context, b *bench) (result, error) {
	return func(ctx context.Context, b *bench) (result, error) {
		clients, err := b.open(ctx, n+1)
		if err != nil {
			return result{}, err
		}
		for i := range n {
			if _, err := clients[n].Lock(ctx, fmt.Sprint("x", i)); err != nil {
				return result{}, err
			}
			go func() { _, _ = clients[i].Lock(ctx, fmt.Sprint("x", i)) }()
		}
		return b.idle(ctx, mostWaiting)
	}
}

// idle measures while nothing happens but what keeps those who wait alive; and how an unrelated lock fares.
func (b *bench) idle(ctx context.Context, most float64) (result, error) {
	time.Sleep(settles)
	bystander, err := b.open(ctx, 1)
	if err != nil {
		return result{}, err
	}
	share, err := b.share(ctx, idleFor)
	if err != nil {
		return result{}, err
	}
	connections, err := b.connections(ctx)
	if err != nil {
		return result{}, err
	}
	stop, pairs := make(chan struct{}), make(chan []time.Duration, 1)
	go func() { pairs <- pairsUntil(ctx, bystander[0], stop) }()
	time.Sleep(2 * time.Second)
	close(stop)
	p99, longest := percentile(<-pairs)
	slow, err := b.slowest(ctx)
	if err != nil {
		return result{}, err
	}
	floor, err := b.silence(ctx, connections)
	return result{
		got: fmt.Sprintf("%.1f %% of a processor of the server, %.1f %% with as many connections that say nothing; longest script %v; a lock's pair p99 %v, longest %v",
			100*share, 100*floor, slow, p99, longest),
		kept: share-floor <= most,
	}, err
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
	time.Sleep(settles)
	return b.share(ctx, idleFor)
}
