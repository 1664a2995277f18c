package interlock

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/memlock"
)

// Random calls of every kind over a bad network, in virtual time. kit_chaos_test.go has the goroutines that make them.

var (
	chaosSeed = flag.Uint64("chaos.seed", 0, "replay the chaos with this seed (goroutines that are due at one "+
		"instant still go in any order)")
	chaosCount = flag.Uint64("chaos.count", longrun.Of[uint64](8, 20), "how many of them to run")
)

// TestChaos_KeepsOthersOut_AndLeavesNothing does everything at once in virtual time, through a network that delays,
// loses and hangs so long that locks are lost. It takes all kinds of locks with all options, by owners with and without
// a name. Holds change their mode, and are extended, entered again and abandoned.
//
// Two holds that exclude each other are never both trusted. Every call returns with its context. When all is done,
// nothing is left in the clients or in the engine.
func TestChaos_KeepsOthersOut_AndLeavesNothing(t *testing.T) {
	first, count := *chaosSeed, uint64(1)
	if first == 0 {
		first, count = rand.Uint64()>>1+1, *chaosCount
	}
	for seed := first; seed < first+count; seed++ {
		ok := t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) { chaos(t, seed, driver.Leases) })
			synctest.Test(t, func(t *testing.T) { chaos(t, seed, driver.Process) })
		})
		if !ok {
			t.Fatalf("replay it with: go test -run Chaos -chaos.seed %d .", seed)
		}
	}
}

func chaos(t *testing.T, seed uint64, ends driver.Lifetime) {
	d := memlock.New(nil)
	defer d.Close()
	random := rand.New(rand.NewPCG(seed, 0))
	scenes := make(map[string]*scene)
	for _, name := range []string{"a", "b"} {
		for _, kind := range []Kind{KindMutex, KindRWMutex, KindElection, KindSemaphore} {
			scenes[string(kind)+name] = &scene{}
		}
	}
	var clients []*Client
	var controls []*faulty.Control
	for range 4 {
		wrapped, control := faulty.Wrap(d.Peer(), random.Uint64(), storms(random, ends)...)
		defer wrapped.Close()
		if ends == driver.Process {
			wrapped = eternal{wrapped, wrapped.(driver.Converter), wrapped.(driver.Requeuer)}
		}
		retain := time.Duration(seed%2) * 3 * second // every other time
		clients = append(clients,
			mustNew(t, wrapped, &Options{Lease: 5 * second, LocalHandoffTime: second, Retain: retain}))
		controls = append(controls, control)
	}
	var all sync.WaitGroup
	for i := range uint64(12) {
		w := &wild{t: t, c: clients[i%4], r: rand.New(rand.NewPCG(seed, i+1)), scenes: scenes}
		all.Go(func() {
			for range 30 {
				w.act()
			}
		})
	}
	closing, clean := random.IntN(10), true
	for i := range 10 {
		if i == closing {
			clean = closeInTheMiddle(t, clients[3])
		}
		control := controls[random.IntN(4)]
		time.Sleep(time.Duration(random.IntN(20)) * second) // virtual
		control.Pause()
		time.Sleep(time.Duration(random.IntN(8)) * second) // virtual
		control.Resume()
	}
	all.Wait()
	for _, control := range controls {
		control.Rules()
	}
	time.Sleep(5 * time.Minute) // virtual: releases that were not heard, what was abandoned, rests
	for _, c := range clients {
		wantIdle(t, c)
		if err := c.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	if !clean && ends == driver.Process { // what was not given back ends with the process
		return
	}
	for info, err := range d.Locks(t.Context(), "") {
		t.Errorf(
			"left in the engine: %+v %v; clients %v %v %v %v; clean %v",
			info,
			err,
			clients[0].in().ID,
			clients[1].in().ID,
			clients[2].in().ID,
			clients[3].in().ID,
			clean,
		)
	}
}

// closeInTheMiddle closes c while it is in use. It reports whether all that it held was given back.
func closeInTheMiddle(t *testing.T, c *Client) bool {
	t.Helper()
	start := time.Now()
	err := c.Close()
	if err != nil && !errors.Is(err, ErrUnavailable) {
		t.Errorf("Close in the middle: %v", err)
	}
	if took := time.Since(start); took > c.in().Config.CloseTimeout {
		t.Errorf("Close took %v", took)
	}
	wantIdle(t, c)
	return err == nil
}

// wantIdle fails if c still has a grant, a queue, a wait, a cooldown, or a renewal to come.
func wantIdle(t *testing.T, c *Client) {
	t.Helper()
	c.in().Lock()
	defer c.in().Unlock()
	if len(
		c.in().EngineHolds,
	)+len(
		c.in().Lines,
	)+len(
		c.in().LinesOfOne,
	)+len(
		c.in().Cooldowns,
	)+len(
		c.in().Retention.Kept,
	)+
		len(
			c.in().Scheduler.Due,
		) != 0 {
		t.Errorf(
			"left in a client: %d grants, %d queues, %d waits, %d rests, %d retained, %d scheduled",
			len(
				c.in().EngineHolds,
			),
			len(c.in().Lines),
			len(c.in().LinesOfOne),
			len(c.in().Cooldowns),
			len(c.in().Retention.Kept),
			len(c.in().Scheduler.Due),
		)
	}
}

// storms returns the faults that a client's calls meet.
func storms(random *rand.Rand, ends driver.Lifetime) []faulty.Rule {
	var rules []faulty.Rule
	for _, op := range []faulty.Op{faulty.Acquire, faulty.Release, faulty.Requeue, faulty.Convert, faulty.Renew} {
		for _, part := range []faulty.Part{faulty.Request, faulty.Reply} {
			rules = append(rules,
				faulty.Rule{Op: op, Chance: 0.05, Drop: part},
				faulty.Rule{Op: op, Chance: 0.03, Drop: part, Hang: true})
		}
		for range 3 {
			delay := time.Duration(random.IntN(2000)) * time.Millisecond
			rules = append(rules, faulty.Rule{Op: op, Chance: 0.1, Before: delay, After: 2*second - delay})
		}
		if ends == driver.Leases { // elsewhere a copy that comes after the horizon would be a hold for ever
			rules = append(rules, faulty.Rule{
				Op: op, Chance: 0.1,
				Copy: time.Duration(random.IntN(9000)) * time.Millisecond,
			})
		}
	}
	return rules
}
