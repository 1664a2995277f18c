package main

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock"
)

// sweeper gives back what was reserved and whose order has not come by its time: the gate has died before it could send
// it, or the queue is too slow for the user to be kept waiting.
type sweeper struct {
	stock *stock
	locks *interlock.Client
	at    passing
}

// sweepEvery is the pause between two sweeps.
const sweepEvery = 500 * time.Millisecond

// run sweeps until ctx ends. Of all processes that run one, one at a time sweeps: two would do no harm, since a
// reservation is given back once, but the others would work in vain.
func (s *sweeper) run(ctx context.Context) error {
	m := s.locks.Mutex("sweep:"+s.stock.item, nil)
	for ctx.Err() == nil {
		_, err := m.TryDo(ctx, func(ctx context.Context) error {
			_, err := s.sweep(ctx, 0)
			return err
		})
		if err != nil && ctx.Err() == nil &&
			!errors.Is(err, interlock.ErrUnavailable) && !errors.Is(err, interlock.ErrLost) {
			return err
		}
		pause(ctx, sweepEvery)
	}
	return nil
}

// sweep gives back what will be overdue by later, and returns how many reservations that were.
func (s *sweeper) sweep(ctx context.Context, later time.Duration) (n int, err error) {
	requests, err := s.stock.overdue(ctx, later)
	for _, request := range requests {
		s.at(beforeSweep)
		back, errBack := s.stock.release(ctx, request, isReserved, "timeout")
		err = errors.Join(err, errBack)
		if back {
			n++
		}
		s.at(afterSweep)
	}
	return n, err
}
