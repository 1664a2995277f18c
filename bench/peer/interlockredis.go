package peer

import (
	"context"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/redislock" // registers the scheme
)

func interlockOnRedis() Spec {
	return Spec{
		Name:  "interlock-redis",
		Does:  "interlock on redislock, default options",
		Redis: true,
		Open: func(ctx context.Context, at Place) (Peer, error) {
			c, err := interlock.Open(ctx, "redis://"+at.Redis, &interlock.Options{Lease: at.Lease})
			if err != nil {
				return nil, err
			}
			return &locks{client: c}, nil
		},
	}
}
