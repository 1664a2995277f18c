package filelock_test

import (
	"context"
	"os"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/drivertest/remote"
	"github.com/interlock-go/interlock/filelock"
)

// TestMain makes this binary serve a driver when the conformance suite starts it as a client's process.
func TestMain(m *testing.M) {
	remote.Main(func(dir string) (driver.Driver, error) { return filelock.New(dir, nil) })
	drivertest.AtOnce(4)
	os.Exit(m.Run())
}

// TestConformance runs each client in a process of its own, so that it can be killed.
func TestConformance(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	dir := t.TempDir()
	var processes sync.Map // by driver
	drivertest.Run(t, drivertest.Harness{
		Open: func(_ context.Context, t *testing.T) driver.Driver {
			d, p, err := remote.Open(dir)
			if err != nil {
				t.Fatal(err)
			}
			processes.Store(d, p)
			return d
		},
		Crash: func(_ *testing.T, d driver.Driver) {
			p, _ := processes.Load(d)
			p.(*remote.Process).Kill()
		},
	})
}

// TestConformance_InOneProcess runs all clients in this process, where only the driver keeps them apart. A client can
// only be closed here, not killed.
func TestConformance_InOneProcess(t *testing.T) {
	if drivertest.Apart(t) {
		return
	}
	dir := t.TempDir()
	drivertest.Run(t, drivertest.Harness{
		Open: func(_ context.Context, t *testing.T) driver.Driver {
			d, err := filelock.New(dir, nil)
			if err != nil {
				t.Fatal(err)
			}
			return d
		},
		Crash: func(t *testing.T, d driver.Driver) {
			if err := d.Close(); err != nil {
				t.Error(err)
			}
		},
		Unlisted: true,
	})
}
