package redislock

import (
	"os"
	"testing"

	"github.com/interlock-go/interlock/drivertest"
)

func TestMain(m *testing.M) {
	drivertest.AtOnce(6)
	os.Exit(m.Run())
}
