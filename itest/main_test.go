package itest

import (
	"os"
	"testing"

	"github.com/interlock-go/interlock/drivertest/servers"
)

var lasting servers.Lasting

func TestMain(m *testing.M) { os.Exit(lasting.Run(m)) }
