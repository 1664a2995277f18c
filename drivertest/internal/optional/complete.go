package optional

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

// The methods of complete for the other interfaces; optional.go has the first ones, and the reason.

func (c complete) AcquireAll(ctx context.Context, rs []*driver.Request) ([]driver.Grant, error) {
	if inner, has := c.Driver.(driver.MultiAcquirer); has {
		return inner.AcquireAll(ctx, rs)
	}
	return nil, driver.ErrUnsupported
}

func (c complete) Adopt(ctx context.Context, from string, r *driver.Request) (driver.Grant, error) {
	if inner, has := c.Driver.(driver.Adopter); has {
		return inner.Adopt(ctx, from, r)
	}
	return driver.Grant{}, driver.ErrUnsupported
}

func (c complete) Resize(ctx context.Context, key driver.Key, limit int) error {
	if inner, has := c.Driver.(driver.Resizer); has {
		return inner.Resize(ctx, key, limit)
	}
	return driver.ErrUnsupported
}

func (c complete) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	return driver.Look(ctx, c.Driver, key)
}

func (c complete) Watch(ctx context.Context, key driver.Key, changed func()) error {
	if inner, has := c.Driver.(driver.Watcher); has {
		return inner.Watch(ctx, key, changed)
	}
	return driver.ErrUnsupported
}

func (c complete) SetLatch(ctx context.Context, l *driver.LatchCall) (bool, error) {
	if inner, has := c.Driver.(driver.Latcher); has {
		return inner.SetLatch(ctx, l)
	}
	return false, driver.ErrUnsupported
}

func (c complete) CountDown(ctx context.Context, l *driver.LatchCall) (int64, error) {
	if inner, has := c.Driver.(driver.Latcher); has {
		return inner.CountDown(ctx, l)
	}
	return 0, driver.ErrUnsupported
}

func (c complete) LatchCount(ctx context.Context, key driver.Key) (int64, error) {
	if inner, has := c.Driver.(driver.Latcher); has {
		return inner.LatchCount(ctx, key)
	}
	return 0, driver.ErrUnsupported
}

func (c complete) CondWait(
	ctx context.Context, give *driver.Release, r *driver.Request, parked func(),
) (driver.Grant, error) {
	if inner, has := c.Driver.(driver.Conder); has {
		return inner.CondWait(ctx, give, r, parked)
	}
	return driver.Grant{}, driver.ErrUnsupported
}

func (c complete) CondSignal(ctx context.Context, s *driver.Signal) error {
	if inner, has := c.Driver.(driver.Conder); has {
		return inner.CondSignal(ctx, s)
	}
	return driver.ErrUnsupported
}

func (c complete) OnReconnect(f func()) (stop func()) {
	if inner, has := c.Driver.(driver.Reconnector); has {
		return inner.OnReconnect(f)
	}
	return func() {}
}
