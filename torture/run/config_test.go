package run

import (
	"testing"
	"time"

	"github.com/interlock-go/interlock/torture/target"
)

// Under the workload retain a lease is longer than that of a retained lock, unless it was chosen; elsewhere it is the
// engine's own.
func TestLeases_OfRetain_AreLongerThanThoseOfWhatIsRetained(t *testing.T) {
	for _, c := range []struct {
		workload          Workload
		own, chosen, want time.Duration
	}{
		{"", time.Second, 0, time.Second},
		{"", time.Second, 3 * time.Second, 3 * time.Second},
		{Retain, time.Second, 0, leaseOfRetain},
		{Retain, 8 * time.Second, 0, 8 * time.Second},
		{Retain, time.Second, time.Second, time.Second},
	} {
		conf := &Config{Target: &target.Target{Lease: c.own}, Workload: c.workload, Lease: c.chosen}
		if got := conf.LeaseTime(); got != c.want {
			t.Errorf("%+v: %v", c, got)
		}
	}
}

// What each target is said to do is what its engine says of itself, where that can be asked without a server.
func TestEnginesThatDoNotRecall_AreRefusedForRetain(t *testing.T) {
	can := 0
	for _, g := range target.Targets() {
		conf := &Config{Target: g, Workload: Retain, Processes: 1, Goroutines: 1, Names: 1, Duration: time.Second}
		if err := conf.validate(); (err == nil) != g.Recalls() {
			t.Errorf("%s: %v", g.Name, err)
		} else if err == nil {
			can++
		}
	}
	if can != 12 { // memory, ZooKeeper and etcd in two set-ups each, and Redis in seven
		t.Errorf("%d engines can have it", can)
	}
}
