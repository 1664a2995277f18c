package compare_test

import (
	"errors"
	"os"
	"testing"
	"time"

	"github.com/interlock-go/interlock/bench/compare"
	"github.com/interlock-go/interlock/bench/engined"
	"github.com/interlock-go/interlock/bench/peer"
	"github.com/interlock-go/interlock/bench/workload"
)

func TestMain(m *testing.M) {
	compare.ServeIfChild()
	workload.ServeIfChild(peer.All())
	if os.Getenv("GORACE") == "" {
		_ = os.Setenv("GORACE", "atexit_sleep_ms=0") // or each of very many processes takes a second to end under -race
	}
	os.Exit(m.Run())
}

// brief compares one engine with a lease that is short.
func brief(t *testing.T, engine string, lease time.Duration) compare.Row {
	t.Helper()
	rows, err := compare.Run(t.Context(), []string{engine}, compare.Settings{
		Rounds: 1, Time: 20 * time.Millisecond, Lease: lease, Waiters: 4,
		Dir: t.TempDir(), Say: func(text string) { t.Log(text) },
	})
	if errors.Is(err, engined.ErrMissing) && os.Getenv("INTERLOCK_REQUIRE") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	return rows[0]
}

func only(t *testing.T, what string, c compare.Cell) float64 {
	t.Helper()
	if len(c.Values) == 0 {
		t.Fatalf("%s was not measured: %s", what, c.Why)
	}
	return c.Values[0]
}

func TestMemory_SaysWhyItCannotFail(t *testing.T) {
	r := brief(t, "mem", time.Second)
	only(t, "a refusal", r.Refused)
	none := map[string]compare.Cell{"hand-off": r.Handoff, "kill": r.Killed, "cut": r.Cut, "stop": r.Stopped}
	for what, c := range none {
		if len(c.Values) > 0 || c.Why == "" {
			t.Errorf("%s: %+v, want a reason", what, c)
		}
	}
}

func TestFile_OfADeadProcessIsFreeAtOnce_OfAStoppedOneNever(t *testing.T) {
	const lease = 500 * time.Millisecond
	r := brief(t, "file", lease)
	if after := only(t, "kill", r.Killed); after > float64(lease) {
		t.Errorf("free %v after the kill", time.Duration(after))
	}
	if len(r.Stopped.Values) > 0 || r.Stopped.Why == "" {
		t.Errorf("stopped: %+v, want that it was not free", r.Stopped)
	}
}

func TestRedis_WaitsForTheLease_AndTheHolderKnows(t *testing.T) {
	const lease = time.Second
	r := brief(t, "redis", lease)
	for what, c := range map[string]compare.Cell{"kill": r.Killed, "cut": r.Cut, "stop": r.Stopped} {
		if after := only(t, what, c); after < float64(lease)/2 || after > 2*float64(lease) {
			t.Errorf("%s: free after %v", what, time.Duration(after))
		}
	}
	// On a machine that is busy with other tests the holder may run a moment after it could have known.
	const busy = 300 * time.Millisecond
	if told := only(t, "the holder's knowledge", r.CutTold); told > r.Cut.Values[0]+float64(busy) {
		t.Errorf("the holder knew after %v, the lock was free after %v",
			time.Duration(told), time.Duration(r.Cut.Values[0]))
	}
	only(t, "the knowledge of who goes on", r.ContTold)
	if trips := only(t, "round trips", r.RoundTrips); trips < 1 || trips > 2 {
		t.Errorf("%v round trips of a refused try", trips)
	}
}

// The five servers are asked at the same time, which is one round trip, and are cut off together.
func TestRedlock_IsReachedAtAllItsServers(t *testing.T) {
	const lease = time.Second
	r := brief(t, "redlock", lease)
	if trips := only(t, "round trips", r.RoundTrips); trips < 1 || trips > 2 {
		t.Errorf("%v round trips of a refused try", trips)
	}
	for what, c := range map[string]compare.Cell{"kill": r.Killed, "cut": r.Cut, "stop": r.Stopped} {
		if after := only(t, what, c); after < float64(lease)/2 {
			t.Errorf("%s: free after %v", what, time.Duration(after))
		}
	}
	only(t, "the holder's knowledge", r.CutTold)
}

func TestPostgres_EndsTheLockOfAKilledClientWithItsConnection(t *testing.T) {
	const lease = 2 * time.Second
	r := brief(t, "postgres", lease)
	if after := only(t, "kill", r.Killed); after > float64(lease)/2 {
		t.Errorf("free %v after the kill", time.Duration(after))
	}
	only(t, "cut", r.Cut)
	if woken := only(t, "wake-ups", r.Woken); woken < 0.5 || woken > 1.5 {
		t.Errorf("%v clients of 4 are woken by a release, want one", woken)
	}
}

func TestRetained_OfAKilledProcess_IsFreeLongBeforeTheLeaseOfAHold(t *testing.T) {
	s, err := engined.Start(t.Context(), engined.Redis)
	if errors.Is(err, engined.ErrMissing) && os.Getenv("INTERLOCK_REQUIRE") == "" {
		t.Skip(err)
	}
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	d, err := compare.Retained(t.Context(), peer.URL(engined.Redis, s.Addr), 2)
	if err != nil || d <= 0 || d > 15*time.Second { // half of the default lease
		t.Errorf("%v, %v", d, err)
	}
}
