package peer

import (
	"context"
	"errors"
	"math"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	goredis9 "github.com/redis/go-redis/v9"
)

// redsyncLease is redsync's own default.
const redsyncLease = 8 * time.Second

func redsyncDefault() Spec {
	return Spec{
		Name: "redsync",
		Does: "redsync v4 over go-redis: SET NX, a script to release; who finds it taken asks again after 50 to 250 ms, its " +
			"default, but never gives up",
		Redis: true, Sends: []string{"set"},
		Open: openRedsync(),
	}
}

func redsyncFast() Spec {
	return Spec{
		Name:  "redsync-1ms",
		Does:  "the same with a retry delay of 1 ms",
		Redis: true, Sends: []string{"set"},
		Open: openRedsync(redsync.WithRetryDelay(time.Millisecond)),
	}
}

// openRedsync sets what a benchmark needs, a wait without end, and further what is given.
func openRedsync(further ...redsync.Option) func(context.Context, Place) (Peer, error) {
	return func(_ context.Context, at Place) (Peer, error) {
		c := newGoRedis(at)
		lease := at.leaseOr(redsyncLease)
		options := append([]redsync.Option{redsync.WithTries(math.MaxInt), redsync.WithExpiry(lease)}, further...)
		return &redsyncs{client: c, maker: redsync.New(goredis.NewPool(c)), options: options, lease: lease}, nil
	}
}

type redsyncs struct {
	client  *goredis9.Client
	maker   *redsync.Redsync
	options []redsync.Option
	lease   time.Duration
}

// Worker returns a mutex of its own, which redsync's users need for each goroutine.
func (r *redsyncs) Worker() (Worker, error) { return r.WorkerOn(lockName) }

// WorkerOn is Worker on another lock.
func (r *redsyncs) WorkerOn(name string) (Worker, error) {
	return redsyncWorker{r.maker.NewMutex(name, r.options...)}, nil
}

// Hold takes a lock and extends it by a loop: redsync renews nothing.
func (r *redsyncs) Hold(ctx context.Context, name string) (Hold, error) {
	w := redsyncWorker{r.maker.NewMutex(name, r.options...)}
	if err := w.Lock(ctx); err != nil {
		return nil, err
	}
	extend := func(ctx context.Context) error {
		ok, err := w.mutex.ExtendContext(ctx)
		if err == nil && !ok {
			err = ErrLost
		}
		return err
	}
	return renew(ctx, r.lease, extend, w.Unlock), nil
}

// Close closes the client.
func (r *redsyncs) Close() error { return r.client.Close() }

type redsyncWorker struct{ mutex *redsync.Mutex }

// Lock is Mutex.LockContext.
func (w redsyncWorker) Lock(ctx context.Context) error { return w.mutex.LockContext(ctx) }

// Unlock is Mutex.UnlockContext.
func (w redsyncWorker) Unlock(ctx context.Context) error {
	ok, err := w.mutex.UnlockContext(ctx)
	if errors.Is(err, redsync.ErrLockAlreadyExpired) || err == nil && !ok {
		return ErrLost
	}
	return err
}
