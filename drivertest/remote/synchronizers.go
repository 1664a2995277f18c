package remote

import (
	"context"

	"github.com/interlock-go/interlock/driver"
)

// Looks, watches, latches and conditions of the driver in front of the child; client.go has the rest.

func (c *client) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	answer, err := c.valued(ctx, &message{Op: "look", Key: key}, &call{})
	if len(answer.Locks) == 0 {
		return driver.LockInfo{}, err
	}
	return answer.Locks[0], err
}

func (c *client) Watch(ctx context.Context, key driver.Key, changed func()) error {
	_, err := c.valued(ctx, &message{Op: "watch", Key: key}, &call{hint: changed})
	return err
}

func (c *client) SetLatch(ctx context.Context, l *driver.LatchCall) (bool, error) {
	answer, err := c.valued(ctx, &message{Op: "set latch", Latch: l}, &call{})
	return answer.Set, err
}

func (c *client) CountDown(ctx context.Context, l *driver.LatchCall) (int64, error) {
	answer, err := c.valued(ctx, &message{Op: "count down", Latch: l}, &call{})
	return answer.Count, err
}

func (c *client) LatchCount(ctx context.Context, key driver.Key) (int64, error) {
	answer, err := c.valued(ctx, &message{Op: "latch count", Key: key}, &call{})
	return answer.Count, err
}

func (c *client) CondWait(
	ctx context.Context, give *driver.Release, r *driver.Request, parked func(),
) (driver.Grant, error) {
	return c.granted(ctx, &message{Op: "cond wait", Release: give, Request: r}, &call{r: r, hint: parked})
}

func (c *client) CondSignal(ctx context.Context, s *driver.Signal) error {
	return c.plain(ctx, &message{Op: "cond signal", Signal: s})
}

// valued makes a call and returns its answer, which is never nil.
func (c *client) valued(ctx context.Context, m *message, about *call) (*message, error) {
	answer, err := c.p.ask(ctx, m, about)
	if err != nil {
		return &message{}, err
	}
	return answer, answer.Err.unpack()
}
