package main

import (
	"context"
	"errors"
	"fmt"
)

// gate is where orders come in.
type gate struct {
	stock *stock
	queue queue
	at    passing
}

// order admits an order. Repeated with the same request it changes nothing and says what has become of it. An error
// says that the outcome is unknown: repeat it.
//
// Where the queue's outbox is part of the reservation, there is nothing that could fail between the two. Otherwise the
// order is sent after it was reserved; if it cannot be, the stock is given back.
func (g *gate) order(ctx context.Context, o order) (answer, error) {
	if err := o.check(); err != nil {
		return "", err
	}
	g.at(beforeReserve)
	a, fresh, err := g.stock.reserve(ctx, o, g.queue.outbox())
	if err != nil || a != reserved {
		return a, err
	}
	g.at(afterReserve)
	if g.queue.outbox() {
		return a, nil
	}
	// A request that comes again is sent again: the one that reserved may have died before. Twice
	// in the queue is no harm.
	err = g.queue.send(ctx, o)
	if err == nil {
		g.at(afterSend)
		return a, nil
	}
	if !fresh {
		return "", fmt.Errorf("the order was reserved before, and could not be sent: %w", err)
	}
	return g.giveBack(ctx, o, err)
}

// giveBack compensates a reservation whose order could not be sent. The queue may have it all the same, and only its
// answer was lost: then either a consumer has taken it, and it stays reserved, or it finds later that it was released.
func (g *gate) giveBack(ctx context.Context, o order, cause error) (answer, error) {
	g.at(sendFailed)
	back, err := g.stock.release(context.WithoutCancel(ctx), o.Request, isReserved, "not sent")
	if err != nil {
		return "", errors.Join(cause, err) // its time will end, and the sweeper gives it back
	}
	g.at(afterGiveBack)
	if !back {
		return reserved, nil
	}
	return released, nil
}
