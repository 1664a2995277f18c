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

// A leader is deposed only where holds last for long enough that two could have the lock.
func TestDepose_TakesLongHolds(t *testing.T) {
	g, err := target.Find("etcd-3")
	if err != nil {
		t.Fatal(err)
	}
	right := Config{
		Target: g, Faults: []target.Fault{target.Depose}, Workload: Held, Processes: 3, Goroutines: 1, Names: 1,
		Hold: target.DeposedHold, Lease: g.Leases[target.Depose], Duration: time.Second,
	}
	if err := right.validate(); err != nil {
		t.Error(err)
	}
	for what, wrong := range map[string]func(c *Config){
		"several locks":       func(c *Config) { c.Names = 2 },
		"short holds":         func(c *Config) { c.Hold = time.Second },
		"another workload":    func(c *Config) { c.Workload = "" },
		"the engine's leases": func(c *Config) { c.Lease = 0 },
	} {
		c := right
		wrong(&c)
		if err := c.validate(); err == nil {
			t.Errorf("with %s it can be done", what)
		}
	}
}
