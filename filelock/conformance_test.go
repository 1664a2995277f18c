package filelock_test

import (
	"context"
	"os"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/filelock"
)

func TestMain(m *testing.M) {
	drivertest.AtOnce(4)
	os.Exit(m.Run())
}

// TestConformance runs all clients in this process, where only the driver keeps them apart. A client can only be closed
// here; what becomes of one that is killed is tested with processes (TestClient_ThatIsKilled and others).
func TestConformance(t *testing.T) {
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
	})
}
