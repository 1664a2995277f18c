package redislock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/internal/rueidisconn"
)

// overhearing is a Conn that notes that something was pushed.
type overhearing struct {
	*rueidisconn.Conn
	pushed chan struct{} // has one place
}

func (c *overhearing) Start(ctx context.Context, channel string, h Handler) error {
	return c.Conn.Start(ctx, channel, overheard{h, c.pushed})
}

// overheard is the handler of such a Conn.
type overheard struct {
	Handler
	pushed chan struct{}
}

func (h overheard) Pushed(l Link, channel, message string) {
	select {
	case h.pushed <- struct{}{}:
	default: // as before
	}
	h.Handler.Pushed(l, channel, message)
}

// waiting starts an Acquire and returns when the server has queued it.
func waiting(ctx context.Context, d *Driver, r *driver.Request) (<-chan error, error) {
	queued, done := make(chan struct{}, 64), make(chan error, 1)
	r.Waiting = func(*driver.HeldError) {
		select {
		case queued <- struct{}{}:
		default:
		}
	}
	go func() { // ends with ctx
		_, err := d.Acquire(ctx, r)
		done <- err
	}()
	select {
	case <-queued:
		return done, nil
	case err := <-done:
		return nil, fmt.Errorf("no wait: %w", err)
	}
}

// pushed waits for the end of what a push to d is to end, and returns an error if it was ended by something else.
// Nothing was pushed to d before that.
func pushed(ctx context.Context, d *Driver, done <-chan error) error {
	select {
	case err := <-done:
		if err != nil {
			return err
		}
	case <-ctx.Done():
		return fmt.Errorf("no push: %w", ctx.Err())
	}
	select {
	case <-d.conn.(*overhearing).pushed:
		return nil
	default:
		return errors.New("no push: a heartbeat has ended it")
	}
}
