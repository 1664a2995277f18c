package redislock

import (
	"context"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/rueidis"
)

func TestConformance_Sentinel(t *testing.T) {
	longrun.Only(t)
	if drivertest.Apart(t) {
		return
	}
	s := servers.RedisSentinel(t, 1, nil)
	drivertest.Run(t, drivertest.Harness{
		Open: func(_ context.Context, t *testing.T) driver.Driver {
			return open(t, rueidis.ClientOption{
				InitAddress: s.Sentinels(), Sentinel: rueidis.SentinelOption{MasterSet: s.Name()},
			}, nil)
		},
		Setup: "Sentinel",
		Hang:  func(*testing.T) func() { return s.Hang() },
	})
}

func TestConformance_Cluster(t *testing.T) {
	longrun.Only(t)
	if drivertest.Apart(t) {
		return
	}
	c := servers.RedisCluster(t, 3, 0, nil)
	drivertest.Run(t, drivertest.Harness{
		Open: func(_ context.Context, t *testing.T) driver.Driver {
			return open(t, rueidis.ClientOption{InitAddress: []string{c.Owner(0).Addr()}}, nil)
		},
		Setup: "Cluster",
		Hang:  func(*testing.T) func() { return c.Hang() },
	})
}

func TestConformance_WaitingForReplicas(t *testing.T) {
	longrun.Only(t)
	if drivertest.Apart(t) {
		return
	}
	r := servers.RedisReplicated(t, 1, nil)
	drivertest.Run(t, drivertest.Harness{
		Open: func(_ context.Context, t *testing.T) driver.Driver {
			return open(t, rueidis.ClientOption{InitAddress: []string{r.Primary.Addr()}},
				&Options{Replicas: 1, ReplicaTimeout: patience})
		},
		Setup: "waiting for a replica",
		Hang:  hang(r.Primary),
	})
}
