package memlock_test

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/memlock"
)

func TestConformance(t *testing.T) {
	if testing.Short() {
		t.Skip("it waits for real leases; with -short the same suite runs in virtual time alone")
	}
	store := memlock.New(nil)
	defer store.Close()
	drivertest.Run(t, drivertest.Harness{
		Open: func(context.Context, *testing.T) driver.Driver { return store.Peer() },
	})
}

func TestConformance_InVirtualTime(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New(nil)
		defer store.Close()
		report := drivertest.Examine(t, drivertest.Harness{
			Open: func(context.Context, *testing.T) driver.Driver { return store.Peer() },
		})
		for _, b := range report.Behaviours {
			if b.Status == drivertest.Failed {
				t.Errorf("%s: %s:\n\t%s", b.Promise, b.Behaviour, b.Reason)
			}
		}
	})
}
