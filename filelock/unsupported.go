//go:build !(linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows)

package filelock

import (
	"context"
	"fmt"
	"iter"
	"os"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
)

// Driver is the file engine, which does not exist on this system: every method returns or yields an error.
type Driver struct{}

var errSystem = fmt.Errorf("file: this system has no flock: %w", driver.ErrUnsupported)

// New returns an error matching driver.ErrUnsupported on this system.
func New(string, *Options) (*Driver, error) { return nil, errSystem }

// Traits describes the engine.
func (d *Driver) Traits() driver.Traits { return traits(false) }

// Acquire returns an error matching driver.ErrUnsupported.
func (d *Driver) Acquire(context.Context, *driver.Request) (driver.Grant, error) {
	return driver.Grant{}, errSystem
}

// Release returns an error matching driver.ErrUnsupported.
func (d *Driver) Release(context.Context, *driver.Release) error { return errSystem }

// File returns an error matching driver.ErrUnsupported.
func (d *Driver) File(driver.Key) (*os.File, error) { return nil, errSystem }

// Locks yields an error matching driver.ErrUnsupported.
func (d *Driver) Locks(context.Context, string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) { yield(driver.LockInfo{}, errSystem) }
}

// Diagnose reports that the engine does not exist on this system.
func (d *Driver) Diagnose(context.Context) []driver.Finding {
	unsupported := enginekit.Fail("system", "use another engine", "%v", errSystem)
	return enginekit.Explained(checksPage, []driver.Finding{unsupported})
}

// Close does nothing.
func (d *Driver) Close() error { return nil }
