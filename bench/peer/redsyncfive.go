package peer

import (
	"context"
	"errors"
	"math"
	"strings"

	"github.com/go-redsync/redsync/v4"
	"github.com/go-redsync/redsync/v4/redis"
	"github.com/go-redsync/redsync/v4/redis/goredis/v9"
	"github.com/interlock-go/interlock/bench/engined"
	goredis9 "github.com/redis/go-redis/v9"
)

func redsyncFive() Spec {
	return Spec{
		Name: "redsync-five",
		Does: "redsync v4 over go-redis with a pool for each of five servers: SET NX and a script to release on all of them; who finds " +
			"it taken asks again after 50 to 250 ms, its default, but never gives up; no token",
		Engine: engined.Redlock,
		Open: func(_ context.Context, at Place) (Peer, error) {
			lease := at.leaseOr(redsyncLease)
			five := &redsyncsOnFive{redsyncs: redsyncs{
				options: []redsync.Option{redsync.WithTries(math.MaxInt), redsync.WithExpiry(lease)}, lease: lease,
			}}
			var pools []redis.Pool
			for _, addr := range strings.Split(at.Server, ",") {
				client := goredis9.NewClient(&goredis9.Options{Addr: addr})
				five.clients = append(five.clients, client)
				pools = append(pools, goredis.NewPool(client))
			}
			five.maker = redsync.New(pools...)
			five.space = at.run()
			return five, nil
		},
	}
}

// redsyncsOnFive is redsyncs with several clients.
type redsyncsOnFive struct {
	redsyncs
	clients []*goredis9.Client
	space   string
}

// Worker returns a mutex of its own.
func (r *redsyncsOnFive) Worker() (Worker, error) { return r.WorkerOn(lockName) }

// WorkerOn is Worker on another lock.
func (r *redsyncsOnFive) WorkerOn(name string) (Worker, error) {
	return r.redsyncs.WorkerOn(r.space + name)
}

// Close closes the clients.
func (r *redsyncsOnFive) Close() error {
	var errs []error
	for _, client := range r.clients {
		errs = append(errs, client.Close())
	}
	return errors.Join(errs...)
}
