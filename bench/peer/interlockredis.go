package peer

import (
	"context"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/redislock" // registers the scheme
)

func interlockOnRedis() Spec {
	return onRedis("interlock-redis", "interlock on redislock, default options", interlock.Options{})
}

func interlockQueueOnRedis() Spec {
	return onRedis("interlock-redis-queue",
		"interlock on redislock, where a hold never passes on inside a process (LocalHandoffs: -1): every hand-over is the server's",
		interlock.Options{LocalHandoffs: -1})
}

func onRedis(name, does string, options interlock.Options) Spec {
	return Spec{
		Name: name, Does: does, Redis: true,
		Open: func(ctx context.Context, at Place) (Peer, error) {
			own := options // several may be opened at once
			own.Lease = at.Lease
			c, err := interlock.Open(ctx, "redis://"+at.Redis, &own)
			if err != nil {
				return nil, err
			}
			return &locks{client: c}, nil
		},
	}
}
