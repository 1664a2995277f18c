package peer

import (
	"context"
	"errors"
	"math"
	"strings"
	"time"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/interlock-go/interlock/bench/engined"
	goredis9 "github.com/redis/go-redis/v9"
)

// redsyncLease is redsync's own default.
const redsyncLease = 8 * time.Second

func redsyncDefault() Spec {
	return Spec{
		Name: "redsync",
		Does: "redsync v4 over go-redis: SET NX, a script to release; a refused client asks again after 50 to 250 " +
			"ms, its default, but never gives up",
		Redis: true, Sends: []string{"set"},
		Open: func(_ context.Context, at Place) (Peer, error) { return openRedsync(at, at.Redis, ""), nil },
	}
}

func redsyncFast() Spec {
	return Spec{
		Name:  "redsync-1ms",
		Does:  "the same with a retry delay of 1 ms",
		Redis: true, Sends: []string{"set"},
		Open: func(_ context.Context, at Place) (Peer, error) {
			return openRedsync(at, at.Redis, "", redsync.WithRetryDelay(time.Millisecond)), nil
		},
	}
}

func redsyncFive() Spec {
	return Spec{
		Name: "redsync-five",
		Does: "redsync v4 over go-redis with a pool for each of five servers: SET NX and a script to release on all " +
			"of them; a refused client asks again after 50 to 250 ms, its default, but never gives up; no token",
		Engine: engined.Redlock,
		Open:   func(_ context.Context, at Place) (Peer, error) { return openRedsync(at, at.Server, at.run()), nil },
	}
}

// openRedsync opens a pool for each server, and sets what a benchmark needs, a wait without end, and further what is
// given.
func openRedsync(at Place, servers, space string, further ...redsync.Option) *redsyncs {
	r := &redsyncs{space: space, lease: at.leaseOr(redsyncLease)}
	r.options = append([]redsync.Option{redsync.WithTries(math.MaxInt), redsync.WithExpiry(r.lease)}, further...)
	var pools []redis.Pool
	for addr := range strings.SplitSeq(servers, ",") {
		c := goredis9.NewClient(&goredis9.Options{Addr: addr})
		r.clients, pools = append(r.clients, c), append(pools, goredis.NewPool(c))
	}
	r.maker = redsync.New(pools...)
	return r
}

type redsyncs struct {
	clients []*goredis9.Client
	maker   *redsync.Redsync
	options []redsync.Option
	lease   time.Duration
	space   string // what the names of its locks begin with
}

// Worker returns a mutex of its own, which redsync's users need for each goroutine.
func (r *redsyncs) Worker(name string) (Worker, error) {
	return redsyncWorker{r.maker.NewMutex(r.space+name, r.options...)}, nil
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

// Close closes the clients.
func (r *redsyncs) Close() error {
	var errs []error
	for _, c := range r.clients {
		errs = append(errs, c.Close())
	}
	return errors.Join(errs...)
}

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
