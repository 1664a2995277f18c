package foreign_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/interlock-go/interlock/redislock"
	"github.com/interlock-go/interlock/redislock/foreign"
	"github.com/redis/rueidis"
)

// Whatever an engine promises holds with the other library's key too, in both forms.
func TestConformance(t *testing.T) { conforms(t, foreign.Redsync()) }

func TestConformance_Redisson(t *testing.T) { conforms(t, foreign.Redisson()) }

func conforms(t *testing.T, f foreign.Format) {
	if drivertest.Apart(t) {
		return
	}
	s := servers.RedisServer(t, nil)
	drivertest.Run(t, drivertest.Harness{
		Open: func(_ context.Context, t *testing.T) driver.Driver { return over(t, s.Addr(), f) },
		Hang: func(*testing.T) func() {
			s.Stop()
			return s.Cont
		},
		Unlisted: true, // docs/evidence/engines.md has redislock, which this is for a while
	})
}

// over returns a driver with a client of its own, which ends with the test.
func over(t *testing.T, addr string, f foreign.Format) driver.Driver {
	t.Helper()
	client := dial(t, addr)
	ours, err := redislock.New(client, nil)
	if err != nil {
		t.Fatal(err)
	}
	return foreign.New(ours, f)
}

// In a Cluster the two keys of a lock are on different nodes.
func TestLock_InACluster_HasTheOtherKeyWhereItBelongs(t *testing.T) {
	cluster := servers.RedisCluster(t, 3, 0, nil)
	redis := dial(t, cluster.Addrs()...)
	ours, err := redislock.New(redis, nil)
	if err != nil {
		t.Fatal(err)
	}
	engine := foreign.New(ours, foreign.Redsync())
	t.Cleanup(func() { _ = engine.Close() })
	locks, err := interlock.New(engine, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = locks.Close() })
	for n := range 20 { // which are in many slots
		name := fmt.Sprint("job ", n)
		l, err := locks.Lock(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		if n, err := redis.Do(t.Context(), redis.B().Exists().Key(name).Build()).ToInt64(); err != nil || n != 1 {
			t.Errorf("%s: the other library's key: %d, %v", name, n, err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	}
}

func dial(t *testing.T, addrs ...string) rueidis.Client {
	t.Helper()
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: addrs, DisableCache: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(client.Close)
	return client
}
