package redlock

import (
	"os"
	"testing"

	"github.com/interlock-go/interlock/drivertest"
)

func TestMain(m *testing.M) {
	drivertest.AtOnce(4)
	os.Exit(m.Run())
}
