package peer

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/redislock"
	"github.com/interlock-go/interlock/redislock/goredislock"
	goredis "github.com/redis/go-redis/v9"
)

// interlock for a program that has a client of Redis already.

func interlockGoRedis() Spec {
	return interlockOverGoRedis("interlock-goredis",
		"interlock on goredislock.New over a go-redis client with default "+
			"options: the driver makes two connections of its own in the way of that client", goredislock.New)
}

func interlockGoRedisPooled() Spec {
	return interlockOverGoRedis("interlock-goredis-pooled",
		"interlock on goredislock.NewPooled over a go-redis client "+
			"with default options: each request takes a connection from that client's pool", goredislock.NewPooled)
}

// newGoRedisDriver is goredislock.New or a function like it.
type newGoRedisDriver func(goredis.UniversalClient, *redislock.Options) (*redislock.Driver, error)

func interlockOverGoRedis(name, does string, open newGoRedisDriver) Spec {
	return Spec{
		Name: name, Does: does, Redis: true,
		Open: func(_ context.Context, at Place) (Peer, error) {
			c := newGoRedis(at)
			d, err := open(c, nil)
			return overClient(d, err, at, c.Close)
		},
	}
}

func interlockRueidis() Spec {
	return Spec{
		Name:  "interlock-rueidis",
		Does:  "interlock on redislock.New over a rueidis client with default options, whose connections it uses",
		Redis: true,
		Open: func(_ context.Context, at Place) (Peer, error) {
			c, err := newRueidis(at)
			if err != nil {
				return nil, err
			}
			d, err := redislock.New(c, nil)
			return overClient(d, err, at, func() error {
				c.Close()
				return nil
			})
		},
	}
}

// overClient is interlock on the driver that was made over a client, or the error of making it. The driver leaves the
// client open.
func overClient(d *redislock.Driver, err error, at Place, closeClient func() error) (Peer, error) {
	if err != nil {
		return nil, errors.Join(err, closeClient())
	}
	return onDriver(d, interlock.Options{Lease: at.Lease}, func() error {
		return errors.Join(d.Close(), closeClient())
	})
}
