package servers

import (
	"strings"
	"testing"
	"time"
)

func TestRedisCluster_WithTLSAndUsers_MovesASlotInSteps(t *testing.T) {
	t.Parallel()
	start := time.Now()
	c := RedisCluster(t, 3, 0, &RedisOptions{TLS: true, Users: []string{"default off", "bob on >secret ~* +get"}})
	t.Logf("ready after %v", time.Since(start))
	slot := c.Slot("{k}1")
	from := c.Owner(slot)
	to := others(c.Nodes(), from)[0]
	want(t, from, "OK", "SET", "{k}1", "v")
	want(t, from, "OK", "SET", "{k}2", "v")
	c.Migrate(slot, to).Abort()
	if _, err := from.Do(bounded(t), "GET", "{k}3"); err != nil {
		t.Errorf("after a migration that was given up: %v", err)
	}
	m := c.Migrate(slot, to)
	if _, err := from.Do(bounded(t), "GET", "{k}3"); err == nil || !strings.HasPrefix(err.Error(), "ASK ") {
		t.Errorf("a key that is not there yet: %v, want ASK", err)
	}
	want(t, from, "v", "GET", "{k}1")
	if n := m.MoveKeys(); n != 2 {
		t.Errorf("%d keys moved, want 2", n)
	}
	m.Finish()
	want(t, to, "v", "GET", "{k}1")
	if _, err := from.Do(bounded(t), "GET", "{k}1"); err == nil || !strings.HasPrefix(err.Error(), "MOVED ") {
		t.Errorf("the old owner: %v, want MOVED", err)
	}
	if c.Owner(slot) != to {
		t.Error("the slot has not moved")
	}
}

func TestRedisCluster_ReplicaTakesOver(t *testing.T) {
	t.Parallel()
	start := time.Now()
	c := RedisCluster(t, 3, 1, nil)
	t.Logf("ready after %v", time.Since(start))
	slot := c.Slot("k")
	first := c.Owner(slot)
	want(t, first, "OK", "SET", "k", "v")
	c.AwaitReady()
	start = time.Now()
	if dead := c.KillOwner(slot); dead != first {
		t.Errorf("killed %s", dead.Addr())
	}
	second := c.AwaitFailover(slot, first)
	t.Logf("failover after %v", time.Since(start))
	want(t, second, "v", "GET", "k")
	start = time.Now()
	c.RestartDead()
	t.Logf("restarted after %v", time.Since(start))
	start = time.Now()
	if third := c.Failover(slot); third != first {
		t.Errorf("the primary is %s, want %s", third.Addr(), first.Addr())
	}
	t.Logf("failover after %v", time.Since(start))
	want(t, first, "v", "GET", "k")
}
