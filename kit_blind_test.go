package interlock

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// blindDriver is an engine that tells of nothing by itself, and at times cannot, or may not, be looked at.
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

// hung is a release to which nothing is answered.
func (h *hooks) hung(ctx context.Context, _ *driver.Release) error {
	<-ctx.Done()
	return ctx.Err()
}
