package main

import (
	"context"
	"time"
)

// queue brings orders from the gate to the consumers, at least once. Two are here: a stream of
// Redis, and NATS JetStream.
type queue interface {
	// outbox reports whether the reservation itself writes the order into the queue, in the same step.
	outbox() bool

	// send puts an order into the queue. After an error it may be there or not. It is not called if outbox.
	send(ctx context.Context, o order) error

	// receive returns the next order, or false if none comes for a moment. What was delivered to a consumer that has
	// died is delivered again.
	receive(ctx context.Context) (d delivery, found bool, err error)

	// pending is how many orders wait or are delivered and not acknowledged.
	pending(ctx context.Context) (int, error)

	close()
}

// delivery is an order that was delivered. It comes again unless it is acknowledged.
type delivery struct {
	order
	garbled error // why it cannot be read, if so
	times   int   // how often it was delivered, this time included
	ack     func(ctx context.Context) error
	bury    func(ctx context.Context, reason string) error // acknowledge it and keep it for people to look at
}

// moment is how long receive waits.
const moment = 100 * time.Millisecond
