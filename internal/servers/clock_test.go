package servers

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestClock_IsWhatARedisSees(t *testing.T) {
	clock := NewClock(t)
	n := RedisServer(t, &RedisOptions{Clock: clock})
	if _, err := n.Do(t.Context(), "SET", "key", "value", "EX", "1000"); err != nil {
		t.Fatal(err)
	}
	for _, want := range []time.Duration{0, -time.Hour, time.Hour, 0} {
		clock.Set(want)
		if got := ahead(t, n); got != want {
			t.Errorf("the server's clock is %v ahead, want %v", got, want)
		}
	}
	clock.Set(time.Hour)
	if reply, err := n.Do(t.Context(), "EXISTS", "key"); err != nil || reply != int64(0) {
		t.Errorf("an hour later a key of 1,000 s: %v, %v; want that it is gone", reply, err)
	}
}

func TestClock_OfOneServerOfSeveral_IsWhatThatOneSees(t *testing.T) {
	clock := NewClock(t)
	s := RedisReplicated(t, 2, &RedisOptions{Clocks: []*Clock{nil, clock}})
	clock.Set(time.Hour)
	for i, want := range []time.Duration{0, time.Hour, 0} {
		if got := ahead(t, s.Nodes()[i]); got != want {
			t.Errorf("the clock of server %d is %v ahead, want %v", i, got, want)
		}
	}
}

func TestClock_IsThatOfAZooKeeper(t *testing.T) {
	clock := NewClock(t)
	n := ZooKeeperServer(t, &ZooKeeperOptions{Clock: clock})
	maps, err := os.ReadFile(fmt.Sprintf("/proc/%d/maps", n.current().PID()))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range []string{clock.library, clock.file.Name()} {
		if !strings.Contains(string(maps), file) {
			t.Errorf("its process does not have %s", file)
		}
	}
}

// ahead is by how much a server's clock is wrong.
func ahead(t *testing.T, n *RedisNode) time.Duration {
	t.Helper()
	reply, err := n.Do(t.Context(), "TIME")
	if err != nil {
		t.Fatal(err)
	}
	seconds, err := strconv.ParseInt(reply.([]any)[0].(string), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return time.Until(time.Unix(seconds, 0)).Round(10 * time.Second)
}

func TestClock_WithoutACompiler_IsWaivedUnlessItIsRequired(t *testing.T) {
	t.Setenv("INTERLOCK_REQUIRE", "")
	if err := ClockWaived(); err != nil {
		t.Skip(err)
	}
	t.Setenv("PATH", t.TempDir())
	if err := ClockWaived(); err == nil || !strings.Contains(err.Error(), "install a C compiler") {
		t.Errorf("got %v", err)
	}
	for _, require := range []string{"all", "clock", "redis,clock"} {
		t.Setenv("INTERLOCK_REQUIRE", require)
		if err := ClockWaived(); err != nil {
			t.Errorf("INTERLOCK_REQUIRE=%s: waived, because %v", require, err)
		}
		if w := witnessed(t, func(w *witness) { NewClock(w) }); !strings.Contains(w.failed, "install a C compiler") {
			t.Errorf("INTERLOCK_REQUIRE=%s: skipped %q, failed %q", require, w.skipped, w.failed)
		}
	}
}
