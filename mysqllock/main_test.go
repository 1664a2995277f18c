package mysqllock

import (
	"os"
	"testing"

	"github.com/interlock-go/interlock/drivertest"
	"github.com/interlock-go/interlock/internal/servers"
)

var lasting servers.Lasting

func TestMain(m *testing.M) {
	drivertest.AtOnce(6)
	os.Exit(lasting.Run(m))
}

// sharedServer returns a server that must be left running.
var sharedServer = servers.Share(&lasting, func(t testing.TB) *servers.MariaDBNode {
	return servers.MariaDBServer(t, nil)
})
