package servers

import (
	"strconv"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/longrun"
)

func TestRedisReplicated_ReplicasHaveWhatThePrimaryHas(t *testing.T) {
	t.Parallel()
	start := time.Now()
	r := RedisReplicated(t, 2, nil)
	t.Logf("ready after %v", time.Since(start))
	want(t, r.Primary, "OK", "SET", "k", "v")
	r.AwaitReplicas()
	want(t, r.Replicas[1], "v", "GET", "k")
}

// A machine that stands still for a second is a cause of its own, and one on which votes are split has them cast again.
func TestRedisSentinel_ReplacesThePrimaryOncePerCause(t *testing.T) {
	t.Parallel()
	for range 2 {
		if replacements(t) == "2" {
			return
		}
	}
	if n := replacements(t); n != "2" {
		t.Errorf("three times in a row more failovers were counted than the 2 that were asked for, at last %s", n)
	}
}

// replacements has the primary replaced twice, and returns how many failovers the Sentinels have counted,
// which is 2 if all say so.
func replacements(t *testing.T) (counted string) {
	t.Helper()
	start := time.Now()
	s := RedisSentinel(t, 2, nil)
	t.Logf("ready after %v", time.Since(start))
	first := s.Primary()
	want(t, first, "OK", "SET", "k", "v")
	start = time.Now()
	second := s.KillPrimary()
	t.Logf("killed: new primary after %v", time.Since(start))
	start = time.Now()
	s.RestartDead()
	t.Logf("restarted after %v", time.Since(start))
	want(t, second, "v", "GET", "k")
	want(t, first, "v", "GET", "k")
	start = time.Now()
	third := s.Failover()
	t.Logf("failover after %v", time.Since(start))
	if first == second || second == third {
		t.Errorf("not replaced: %s %s %s", first.Addr(), second.Addr(), third.Addr())
	}
	for _, n := range s.SentinelNodes() {
		table, err := sentinelTable(bounded(t), n, "MASTERS")
		if err != nil {
			t.Fatal(err)
		}
		epoch := table[0]["config-epoch"]
		if epoch != "2" || counted == "" {
			counted = epoch
		}
		t.Logf("%s has counted %s failovers", n.Addr(), epoch)
	}
	return counted
}

// Sentinels that need more votes than they are decide on nobody.
func TestRedisSentinel_WhoseSentinelsDecideNothing_ReplacesThePrimaryAllTheSame(t *testing.T) {
	longrun.Only(t)
	t.Parallel()
	s := RedisSentinel(t, 1, nil)
	for _, n := range s.SentinelNodes() {
		want(t, n, "OK", "SENTINEL", "SET", sentinelName, "quorum", strconv.Itoa(sentinelCount+1))
	}
	if old := s.Primary(); s.KillPrimary() == old {
		t.Error("the primary is the one that was killed")
	}
}

func TestRedisSentinel_WithTLSAndUsers_ReplacesAPrimaryThatHangs(t *testing.T) {
	longrun.Only(t)
	t.Parallel()
	s := RedisSentinel(t, 1, &RedisOptions{TLS: true, Password: "p w", Users: []string{"bob on >secret ~* +get"}})
	old := s.Primary()
	want(t, old, "OK", "SET", "k", "v")
	old.Stop()
	primary := s.AwaitFailover(old)
	if primary == old {
		t.Error("the primary is the one that hangs")
	}
	old.Cont()
	s.AwaitReady()
	want(t, old, "v", "GET", "k")
	c, err := DialRedis(bounded(t), primary.Addr(), primary.TLS())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if _, err := c.Do(bounded(t), "AUTH", "bob", "secret"); err != nil {
		t.Error(err)
	}
	if v, err := c.Do(bounded(t), "GET", "k"); v != "v" {
		t.Errorf("GET k: %v, %v", v, err)
	}
}
