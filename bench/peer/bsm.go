package peer

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/bsm/redislock"
	goredis "github.com/redis/go-redis/v9"
)

func bsmFast() Spec { return bsm(time.Millisecond) }
func bsmSlow() Spec { return bsm(10 * time.Millisecond) }

// bsm is bsm/redislock. The row is not named redislock, because one of interlock's engines is.
func bsm(delay time.Duration) Spec {
	return Spec{
		Name: fmt.Sprintf("bsm-%v", delay),
		Does: fmt.Sprintf("bsm/redislock over go-redis: a script to obtain, a script to release, LinearBackoff(%v)",
			delay),
		// Without a backoff it does not wait at all, so there is no default to measure.
		Redis: true,
		Open: func(_ context.Context, at Place) (Peer, error) {
			c := newGoRedis(at)
			return &bsmLocks{
				client: c, locker: redislock.New(c), lease: at.leaseOr(usualLease),
				options: &redislock.Options{RetryStrategy: redislock.LinearBackoff(delay)},
			}, nil
		},
	}
}

type bsmLocks struct {
	client  *goredis.Client
	locker  *redislock.Client
	options *redislock.Options
	lease   time.Duration
}

// Worker returns a hold's place; all workers share the client.
func (b *bsmLocks) Worker(name string) (Worker, error) {
	return &bsmWorker{bsmLocks: b, key: name}, nil
}

// Hold takes a lock and refreshes it by a loop, as its documentation shows: redislock renews nothing.
func (b *bsmLocks) Hold(ctx context.Context, name string) (Hold, error) {
	w := &bsmWorker{bsmLocks: b, key: name}
	if err := w.Lock(ctx); err != nil {
		return nil, err
	}
	extend := func(ctx context.Context) error { return w.held.Refresh(ctx, b.lease, nil) }
	return renew(ctx, b.lease, extend, w.Unlock), nil
}

// Close closes the client.
func (b *bsmLocks) Close() error { return b.client.Close() }

type bsmWorker struct {
	*bsmLocks
	key  string
	held *redislock.Lock
}

// Lock is Client.Obtain. It gives up after a lease if ctx has no deadline, and is called again then.
func (w *bsmWorker) Lock(ctx context.Context) (err error) {
	for {
		w.held, err = w.locker.Obtain(ctx, w.key, w.lease, w.options)
		if ctx.Err() != nil || !errors.Is(err, context.DeadlineExceeded) {
			return err
		}
	}
}

// Unlock is Lock.Release.
func (w *bsmWorker) Unlock(ctx context.Context) error {
	err := w.held.Release(ctx)
	if errors.Is(err, redislock.ErrLockNotHeld) {
		return ErrLost
	}
	return err
}
