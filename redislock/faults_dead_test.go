package redislock

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/servers"
	"github.com/redis/rueidis"
)

// The dead of these tests have asked by hand and are never heard of again. Their pushes are heard, as those of machines
// are that have vanished without a word; in a Cluster the server does not care.

func TestDead_AHolderAndManyWaiters_CostOneLeaseAndOneClaim(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	t.Run("alone", func(t *testing.T) {
		t.Parallel()
		s := servers.RedisServer(t, nil)
		manyDie(t, s, soloOption(s.Addr()), "p", nil)
	})
	t.Run("Sentinel", func(t *testing.T) {
		t.Parallel()
		s := servers.RedisSentinel(t, 1, nil)
		option := rueidis.ClientOption{
			InitAddress: s.Sentinels(), Sentinel: rueidis.SentinelOption{MasterSet: s.Name()},
		}
		manyDie(t, s.Primary(), option, "p", nil)
	})
	t.Run("waiting for a replica", func(t *testing.T) {
		t.Parallel()
		r := servers.RedisReplicated(t, 1, nil)
		manyDie(t, r.Primary, soloOption(r.Primary.Addr()), "p", &Options{Replicas: 1, ReplicaTimeout: patience})
	})
	t.Run("Cluster", func(t *testing.T) {
		t.Parallel()
		c := servers.RedisCluster(t, 3, 0, nil)
		manyDie(t, c.Owner(c.Slot("{a}")), clusterOption(c), "s", nil)
	})
}

// manyDie has who lives wait behind the dead, and counts how often one of those is granted the lock.
func manyDie(t *testing.T, server *servers.RedisNode, option rueidis.ClientOption, way string, o *Options) {
	t.Helper()
	s := newStage(t, server, scriptsAsTheyAre())
	s.name = "mutex:{a}"
	if way == "s" {
		if _, err := s.ears.Do(s.ctx, "SSUBSCRIBE", s.prefix+heard+":{a}"); err != nil {
			t.Fatal(err)
		}
	}
	opts := Options{Check: CheckNone}
	if o != nil {
		opts = *o
	}
	opts.Prefix = s.prefix
	d := open(t, option, &opts)
	defer func() { _ = d.Close() }()

	const lease = time.Second
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	s.acquire(ask{id: "dead", way: way, lease: lease})
	for i := range 6 {
		s.acquire(ask{id: fmt.Sprint("dead", i), way: way, lease: lease, claim: lease, place: 5 * lease / 2})
	}
	lives := lockRequest("lives", "{a}")
	if _, err := d.Acquire(ctx, lives); err != nil {
		t.Fatalf("who lives: %v", err)
	}
	pushed := s.pushes()
	if s.err != nil {
		t.Fatal(s.err)
	}
	if n := strings.Count(pushed, "G dead"); n > 1 {
		t.Errorf("the dead were granted the lock %d times: %s", n, pushed)
	}
	if err := d.Release(ctx, &driver.Release{Key: lives.Key, ID: lives.ID}); err != nil {
		t.Error(err)
	}
}
