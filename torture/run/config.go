package run

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/interlock-go/interlock/torture/target"
)

// Workload is what the workers do under their locks. The zero value is the usual mixture.
type Workload string

// Retain is mostly bursts of mutexes that are retained after each hold, and in between the usual mixture.
const Retain Workload = "retain"

// Held is holds of mutexes that last for Config.Hold each, no shorter and no longer, and in which the holder looks
// again and again.
const Held Workload = "held"

// Workloads lists those that have a name.
func Workloads() []Workload { return []Workload{Retain, Held} }

// leaseOfRetain is how long leases last at least in a run of Retain. It is longer than what is retained lasts in an
// engine, so that a trust in the longer one, or a renewal that does not shorten it, has consequences; and than faults
// mostly are.
const leaseOfRetain = 5 * time.Second

// Config says what to do.
type Config struct {
	Target     *target.Target `json:"-"`
	Engine     string         // the name of Target
	Faults     []target.Fault
	Processes  int
	Goroutines int // of each
	Names      int // of locks
	Duration   time.Duration
	Increments int // if not 0, it ends sooner, when so many updates were made behind the fence
	Hold       time.Duration
	Lease      time.Duration `json:"-"` // 0: see LeaseTime; faults last as with the target's own in any case
	Cancel     float64
	Seed       uint64
	Pairs      bool     // a client has a fault at the same time as something else
	Workload   Workload `json:",omitempty"`
	Long       bool     // instead: each goroutine holds a lock of its own for 20 leases, and the server is far away
	Untimed    bool     // K8 is not judged: other programs take the processors from this run
	Dir        string   `json:"-"`
	Worker     []string `json:"-"` // the command that makes this program a worker
}

// OneByOne is how long it takes until each goroutine has held a lock once, one after the other.
func (c *Config) OneByOne() time.Duration {
	return c.Hold * time.Duration(c.Processes*c.Goroutines)
}

// LeaseTime is how long leases last: the target's own, if nothing else is said.
func (c *Config) LeaseTime() time.Duration {
	usual := c.Target.Lease
	if c.Workload == Retain {
		usual = max(usual, leaseOfRetain)
	}
	return cmp.Or(c.Lease, usual)
}

// validateWorkload refuses what is not known, and what the engine or the other settings do not allow.
func (c *Config) validateWorkload() error {
	switch {
	case c.Workload == "":
		return nil
	case !slices.Contains(Workloads(), c.Workload):
		return fmt.Errorf("there is no workload %q: choose mixed, or from %v", c.Workload, Workloads())
	case c.Long || c.Increments > 0:
		return fmt.Errorf("the workload %s is neither for long holds nor for a number of increments", c.Workload)
	case c.Workload == Retain && !c.Target.Recalls():
		return fmt.Errorf("engine %s cannot have the workload %s: it does not tell a holder that another process waits",
			c.Target.Name, c.Workload)
	}
	return nil
}

func (c *Config) validate() error {
	switch {
	case c.Target == nil:
		return errors.New("no engine was chosen")
	case c.Target.Inside && c.Processes != 1:
		return fmt.Errorf("engine %s is inside of one process: choose one with several goroutines, as -workers 1x8",
			c.Target.Name)
	case c.Processes < 1 || c.Goroutines < 1 || c.Names < 1:
		return errors.New("a run needs at least one process, one goroutine and one name")
	case c.Long && len(c.Faults) > 0 && !slices.Equal(c.Faults, []target.Fault{target.None}):
		return errors.New("long holds are for runs without faults")
	case c.Lease < 0:
		return fmt.Errorf("the lease %v is negative", c.Lease)
	case c.Duration <= 0 && !c.Long:
		return fmt.Errorf("the duration %v is not positive", c.Duration)
	}
	return cmp.Or(c.validateWorkload(), c.validateFaults())
}

func (c *Config) validateFaults() error {
	if len(c.Faults) == 0 {
		c.Faults = []target.Fault{target.None}
	}
	for _, f := range c.Faults {
		if !slices.Contains(target.All(), f) {
			return fmt.Errorf("there is no fault %q: choose from %v", f, target.All())
		}
		if !c.Target.Can(f) {
			return fmt.Errorf("the fault %s cannot be done to %s: choose from %v", f, c.Target.Name, c.Target.Faults)
		}
	}
	lease := c.Target.Leases[target.Depose]
	if slices.Contains(c.Faults, target.Depose) &&
		(c.Workload != Held || c.Names != 1 || c.Hold < target.DeposedHold || c.Lease != lease) {
		return fmt.Errorf("the fault %s is for long holds of one lock: choose -workload %s -names 1 -hold %v -lease %v",
			target.Depose, Held, target.DeposedHold, lease)
	}
	return nil
}
