package zklock

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

// options make the servers remove empty containers quickly, so that this happens in the middle of things, and miss a
// leader that hangs after one and a half seconds.
func options() *servers.ZooKeeperOptions {
	return &servers.ZooKeeperOptions{
		Config:     map[string]string{"syncLimit": "15"},
		Properties: map[string]string{"znode.container.checkIntervalMs": "200"},
	}
}

// sharedServer returns a server that must be left as it is: running.
var sharedServer = servers.Share(&lasting, func(t testing.TB) *servers.ZooKeeperNode {
	return servers.ZooKeeperServer(t, options())
})

// sharedEnsemble returns three servers that must be left running.
var sharedEnsemble = servers.Share(&lasting, func(t testing.TB) *servers.ZooKeeperEnsemble {
	return servers.NewZooKeeperEnsemble(t, options())
})
