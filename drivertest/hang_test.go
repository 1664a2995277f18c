package drivertest_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/drivertest/internal/broken"
	"github.com/interlock-go/interlock/memlock"
)

// pausing returns a Harness whose Hang pauses all drivers that open has opened.
func pausing(open func() driver.Driver) drivertest.Harness {
	var controls []*faulty.Control
	return drivertest.Harness{
		Open: func(context.Context, *testing.T) driver.Driver {
			d, c := faulty.Wrap(open(), 1)
			controls = append(controls, c)
			return d
		},
		Crash: func(*testing.T, driver.Driver) {}, // nobody calls it any more, which a lease ends
		Hang: func(*testing.T) func() {
			for _, c := range controls {
				c.Pause()
			}
			return func() {
				for _, c := range controls {
					c.Resume()
				}
			}
		},
	}
}

func TestEnginesBehindANetworkThatHangs_AreAccepted(t *testing.T) {
	engines := map[string]func() (open func() driver.Driver, end func()){
		"memory": func() (func() driver.Driver, func()) {
			store := memlock.New(nil)
			return func() driver.Driver { return store.Peer() }, func() { _ = store.Close() }
		},
		"sessions": func() (func() driver.Driver, func()) {
			store := memlock.New(nil)
			return func() driver.Driver { return openSession(store.Peer()) }, func() { _ = store.Close() }
		},
		"with requeue": func() (func() driver.Driver, func()) {
			store := broken.NewStore(broken.None)
			return func() driver.Driver { return store.Client() }, func() {}
		},
	}
	for name, start := range engines {
		var report *drivertest.Report
		synctest.Test(t, func(t *testing.T) {
			open, end := start()
			defer end()
			report = drivertest.Examine(t, pausing(open))
		})
		for _, b := range report.Behaviours {
			if b.Promise == drivertest.Hanging && b.Status != drivertest.Kept {
				t.Errorf("%s: %s is %s:\n\t%s", name, b.Behaviour, b.Status, b.Reason)
			}
		}
	}
}
