package interlock

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// blinkers is an engine that tells of nothing by itself, and at times cannot, or may not, be looked at.
type blinkers struct {
	driver.Driver
	driver.Renewer
	inner *memlock.Driver
	shut  atomic.Bool
	bars  atomic.Bool // refuses to be looked at
}

func newBlinkers(t *testing.T) *blinkers {
	inner := memlock.New(nil)
	t.Cleanup(func() { _ = inner.Close() })
	return &blinkers{Driver: inner, Renewer: inner, inner: inner}
}

func (b *blinkers) set(shut bool) { b.shut.Store(shut) }

func (b *blinkers) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
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
