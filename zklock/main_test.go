package zklock

import (
	"os"
	"slices"
	"sync"
	"testing"

	"github.com/interlock-go/interlock/drivertest/servers"
)

// Servers take seconds to start, so tests that do them no harm share one, and one ensemble.

func TestMain(m *testing.M) {
	code := m.Run()
	for _, cleanup := range slices.Backward(cleanups) {
		cleanup()
	}
	os.Exit(code)
}

var cleanups []func() // of what lasts for all tests

// lasting is whichever test runs, but its cleanups are for when all tests have ended.
type lasting struct{ testing.TB }

func (l *lasting) Cleanup(f func()) { cleanups = append(cleanups, f) }

func (l *lasting) Failed() bool { return false }

func (l *lasting) TempDir() string {
	dir, err := os.MkdirTemp("", "zklock")
	if err != nil {
		l.Fatal(err)
	}
	cleanups = append(cleanups, func() { _ = os.RemoveAll(dir) })
	return dir
}

var shared struct {
	server   *servers.ZooKeeperNode
	ensemble *servers.ZooKeeperEnsemble
	owner    lasting
	mu       sync.Mutex
}

// options make the servers remove empty containers quickly, so that this happens in the middle of things, and miss a leader
// that hangs after one and a half seconds.
func options() *servers.ZooKeeperOptions {
	return &servers.ZooKeeperOptions{
		Config:     map[string]string{"syncLimit": "15"},
		Properties: map[string]string{"znode.container.checkIntervalMs": "200"},
	}
}

// sharedServer returns a server that must be left as it is: running.
func sharedServer(t testing.TB) *servers.ZooKeeperNode {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.owner.TB = t
	if shared.server == nil {
		shared.server = servers.ZooKeeperServer(&shared.owner, options())
	}
	return shared.server
}

// sharedEnsemble returns three servers that must be left running.
func sharedEnsemble(t testing.TB) *servers.ZooKeeperEnsemble {
	t.Helper()
	shared.mu.Lock()
	defer shared.mu.Unlock()
	shared.owner.TB = t
	if shared.ensemble == nil {
		shared.ensemble = servers.NewZooKeeperEnsemble(&shared.owner, options())
	}
	return shared.ensemble
}
