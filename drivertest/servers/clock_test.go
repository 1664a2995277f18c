package servers

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestClock_IsWhatARedisSees(t *testing.T) {
	clock := NewClock(t)
	n := RedisServer(t, &RedisOptions{Clock: clock})
	wrong := func() time.Duration {
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
	if _, err := n.Do(t.Context(), "SET", "key", "value", "EX", "1000"); err != nil {
		t.Fatal(err)
	}
	for _, ahead := range []time.Duration{0, -time.Hour, time.Hour, 0} {
		clock.Set(ahead)
		if got := wrong(); got != ahead {
			t.Errorf("the server's clock is %v ahead, want %v", got, ahead)
		}
	}
	clock.Set(time.Hour)
	if reply, err := n.Do(t.Context(), "EXISTS", "key"); err != nil || reply != int64(0) {
		t.Errorf("an hour later a key of 1,000 s: %v, %v; want that it is gone", reply, err)
	}
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
