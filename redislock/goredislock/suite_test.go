package goredislock

import (
	"context"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/redis/go-redis/v9"
)

// way is a way to make a driver over a client.
type way func(redis.UniversalClient, *redislock.Options) (*redislock.Driver, error)

// ways are those that there are for a client of one server.
var ways = map[string]way{"New": New, "NewPooled": NewPooled}

// The suites of the engine, over this client. They write no results: the engine's own do. (So the file is not named
// conformance_test.go, by which engines are found.)

func TestConformance(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	addr := servers.Redis(t)
	conforms(t, New, nil, func() redis.UniversalClient { return redis.NewClient(&redis.Options{Addr: addr}) })
}

func TestConformance_Sentinel(t *testing.T) {
	longrun.Only(t)
	if drivertest.Apart(t) {
		return
	}
	s := servers.RedisSentinel(t, 1, nil)
	conforms(t, New, nil, func() redis.UniversalClient {
		return redis.NewFailoverClient(&redis.FailoverOptions{MasterName: s.Name(), SentinelAddrs: s.Sentinels()})
	})
}

func TestConformance_Cluster(t *testing.T) {
	longrun.Only(t)
	if drivertest.Apart(t) {
		return
	}
	c := servers.RedisCluster(t, 3, 0, nil)
	conforms(t, New, nil, func() redis.UniversalClient {
		return redis.NewClusterClient(&redis.ClusterOptions{Addrs: c.Addrs()})
	})
}

func TestConformance_WaitingForReplicas(t *testing.T) {
	longrun.Only(t)
	if drivertest.Apart(t) {
		return
	}
	r := servers.RedisReplicated(t, 1, nil)
	conforms(t, NewPooled, &redislock.Options{Replicas: 1, ReplicaTimeout: 10 * time.Second},
		func() redis.UniversalClient {
			return redis.NewClient(&redis.Options{Addr: r.Primary.Addr()})
		})
}

// conforms runs the suite. Each driver has a client of its own, as another process would.
func conforms(t *testing.T, open way, opts *redislock.Options, dial func() redis.UniversalClient) {
	t.Helper()
	drivertest.Run(t, drivertest.Harness{
		Open: func(_ context.Context, t *testing.T) driver.Driver {
			client := dial()
			d, err := open(client, opts)
			if err != nil {
				t.Fatal(err)
			}
			return &owning{d, client}
		},
		Unlisted: true,
	})
}

// owning is a driver that closes its client.
type owning struct {
	*redislock.Driver
	client redis.UniversalClient
}

func (d *owning) Close() error {
	err := d.Driver.Close()
	_ = d.client.Close() // fails the second time
	return err
}
