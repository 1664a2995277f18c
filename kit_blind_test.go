package interlock

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// Engines that tell nothing: one without Watcher, whose Look may fail, and a Release that gets no answer.

// blindDriver is an engine without Watcher, whose Look fails or is refused when the test says so.
type blindDriver struct {
	driver.Driver
	driver.Renewer
	inner *memlock.Driver
	shut  atomic.Bool
	bars  atomic.Bool // refuses to be looked at
}

func newBlindDriver(t *testing.T) *blindDriver {
	inner := memlock.New(nil)
	t.Cleanup(func() { _ = inner.Close() })
	return &blindDriver{Driver: inner, Renewer: inner, inner: inner}
}

func (b *blindDriver) set(shut bool) { b.shut.Store(shut) }

func (b *blindDriver) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	if b.bars.Load() {
		return driver.LockInfo{}, errNoRights
	}
	if b.shut.Load() {
		return driver.LockInfo{}, &driver.UnavailableError{}
	}
	return b.inner.Look(ctx, key)
}

// hung is a Release that gets no answer before its context ends.
func (h *hooks) hung(ctx context.Context, _ *driver.Release) error {
	<-ctx.Done()
	return ctx.Err()
}
