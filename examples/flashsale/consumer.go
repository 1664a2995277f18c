package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"time"
)

// consumer books orders. It may be killed anywhere: the order is delivered again, and each step may be repeated.
type consumer struct {
	stock  *stock
	ledger *ledger
	queue  queue
	at     passing
	log    *slog.Logger
	most   int // instead of mostDeliveries, if not 0
}

const (
	// mostDeliveries is how often an order is tried before it is given up.
	mostDeliveries = 20

	// errorPause is how long a consumer leaves a server alone that does not answer.
	errorPause = 50 * time.Millisecond
)

// run handles orders until ctx ends or, if drain, until none is left.
func (c *consumer) run(ctx context.Context, drain bool) error {
	for ctx.Err() == nil {
		d, found, err := c.queue.receive(ctx)
		switch {
		case err != nil:
		case found:
			err = c.handle(ctx, d)
		case drain:
			n, errPending := c.queue.pending(ctx)
			if errPending == nil && n == 0 {
				return nil
			}
			err = errPending
		}
		if err != nil && ctx.Err() == nil {
			c.log.Warn("consumer: it will come again", "request", d.Request, "err", err)
			pause(ctx, errorPause)
		}
	}
	return nil
}

// handle books one order, or finds that it is booked, or gives it back because the database refuses it; and then
// acknowledges it. An error leaves the order to the queue, which delivers it again.
func (c *consumer) handle(ctx context.Context, d delivery) error {
	c.at(afterReceive)
	if d.garbled != nil {
		return d.bury(ctx, "unreadable: "+d.garbled.Error())
	}
	state, err := c.stock.take(ctx, d.order)
	if err != nil {
		return err
	}
	c.at(afterTake)
	switch state {
	case isTaken:
		if err := c.book(ctx, d); err != nil {
			return c.orGiveUp(ctx, d, err)
		}
	case isConfirmed, isReleased: // done before, or given back before: there is nothing to do
	default:
		return fmt.Errorf("take.lua returned %q", state)
	}
	if err := d.ack(ctx); err != nil {
		return err
	}
	c.at(afterAck)
	return nil
}

// book has the database decide, and tells Redis.
func (c *consumer) book(ctx context.Context, d delivery) error {
	v, err := c.ledger.book(ctx, d.order, func() error { c.at(beforeCommit); return nil })
	if err != nil {
		return err
	}
	if v == booked {
		c.at(afterCommit)
		if err := c.stock.confirm(ctx, d.Request); err != nil {
			return err
		}
		c.at(afterConfirm)
		return nil
	}
	c.at(afterRefusal)
	if _, err := c.stock.release(ctx, d.Request, isTaken, "refused: "+string(v)); err != nil {
		return err
	}
	c.at(afterRelease)
	return nil
}

// orGiveUp returns err, which leaves the order to the queue, until that was often enough. Then the order is given up:
// first in the database, so that no transaction that is still under way can book it, then in Redis, then in the queue,
// where it is kept for people to look at. As long as the database does not answer, nothing is given up.
func (c *consumer) orGiveUp(ctx context.Context, d delivery, err error) error {
	if d.times < cmp.Or(c.most, mostDeliveries) {
		return err
	}
	v, errVoid := c.ledger.void(ctx, d.order)
	if errVoid != nil {
		return errors.Join(err, errVoid)
	}
	if v == booked {
		return errors.Join(c.stock.confirm(ctx, d.Request), d.ack(ctx))
	}
	c.at(afterVoid)
	if _, errRelease := c.stock.release(ctx, d.Request, isTaken, "given up"); errRelease != nil {
		return errors.Join(err, errRelease)
	}
	c.at(beforeBury)
	return d.bury(ctx, err.Error())
}

// pause waits, or until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
	case <-ctx.Done():
	}
}
