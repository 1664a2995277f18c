package peer

import (
	"context"
	"sync/atomic"
	"time"

	goredis "github.com/redis/go-redis/v9"
	"github.com/redis/rueidis"
)

// usualLease is for peers that have no lease of their own to give.
const usualLease = 30 * time.Second

func (at *Place) leaseOr(usual time.Duration) time.Duration {
	if at.Lease > 0 {
		return at.Lease
	}
	return usual
}

// newRueidis returns a client as its users get it who set nothing but the address.
func newRueidis(at Place) (rueidis.Client, error) {
	return rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{at.Redis}})
}

// newGoRedis returns a client as its users get it who set nothing but the address.
func newGoRedis(at Place) *goredis.Client {
	return goredis.NewClient(&goredis.Options{Addr: at.Redis})
}

// compareAndDelete is what everybody writes who locks by hand.
//
// KEYS[1] is the lock, ARGV[1] the value of who may delete it. It returns how many keys were deleted.
const compareAndDelete = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

// renewing is a hold whose lease somebody has to extend who is not the library: a goroutine with a ticker, as users
// write it.
type renewing struct {
	lost    atomic.Bool
	stop    context.CancelFunc
	stopped chan struct{}
	release func(ctx context.Context) error
}

// renew starts to extend, three times in each lease. An error, whatever it says, ends the hold.
func renew(ctx context.Context, lease time.Duration, extend, release func(ctx context.Context) error) *renewing {
	ctx, stop := context.WithCancel(context.WithoutCancel(ctx))
	r := &renewing{stop: stop, stopped: make(chan struct{}), release: release}
	go func() { // ends when Release stops it, or with an error
		defer close(r.stopped)
		tick := time.NewTicker(lease / 3)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if err := extend(ctx); err != nil && ctx.Err() == nil {
				r.lost.Store(true)
				return
			}
		}
	}()
	return r
}

// Release ends the renewals and gives the lock back.
func (r *renewing) Release(ctx context.Context) error {
	r.stop()
	<-r.stopped
	if r.lost.Load() {
		return ErrLost
	}
	return r.release(ctx)
}
