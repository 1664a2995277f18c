package main

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock/examples/internal/part"
)

// outcome is what became of the stock.
type outcome struct {
	way        way
	place      place
	processes  int
	stock      int // at the beginning
	sold, left int
}

// oversold is by how much more was sold than there was.
func (o outcome) oversold() int { return o.sold - o.stock }

// exact reports whether each item was sold once.
func (o outcome) exact() bool { return o.sold == o.stock && o.left == 0 }

// asExpected reports whether a right way was right and a wrong way was wrong.
func (o outcome) asExpected() bool {
	if o.way.sound {
		return o.exact()
	}
	return o.oversold() > 0
}

// trade sells a shelf out in one way, with several processes.
//
// A wrong way oversells for certain: all sellers read the full stock before the first of them writes, so
// their first sales count once. After that the number goes down by one at most with each sale, so at least
// stock - 1 further items are sold.
func trade(ctx context.Context, p place, w way, n size) (outcome, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel() // kills the sellers that are left after a failure
	o := outcome{way: w, place: p, processes: n.processes, stock: n.stock}
	if w.alone {
		o.processes = 1
	}
	stock, err := p.open()
	if err != nil {
		return o, err
	}
	defer stock.close()
	if err := stock.fill(ctx, n.stock); err != nil {
		return o, err
	}
	sellers, err := hire(ctx, o.processes, order{Place: p, Way: w.name, Goroutines: n.goroutines, Meet: w.letsIn == 0})
	if err != nil {
		return o, err
	}
	if w.letsIn == 0 {
		if err := meet(sellers); err != nil {
			return o, err
		}
	}
	if o.sold, err = settle(sellers); err != nil {
		return o, err
	}
	o.left, err = stock.read(ctx)
	return o, err
}

func hire(ctx context.Context, n int, o order) ([]*part.Actor, error) {
	var sellers []*part.Actor
	for range n {
		seller, err := part.Start(ctx, sellerPart, o)
		if err != nil {
			return nil, err
		}
		sellers = append(sellers, seller)
	}
	return sellers, nil
}

// meet waits until all sellers have read, and lets them go on.
func meet(sellers []*part.Actor) error {
	for _, s := range sellers {
		var w word
		if err := s.Receive(&w); err != nil {
			return errors.Join(fmt.Errorf("a seller does not say that it has read: %w", err), s.Stop())
		}
	}
	var failed error
	for _, s := range sellers {
		failed = errors.Join(failed, s.Send(word{}))
	}
	return failed
}

// settle waits for all sellers, and returns how many items they have sold.
func settle(sellers []*part.Actor) (sold int, failed error) {
	for _, s := range sellers {
		var w word
		err := s.Receive(&w)
		failed = errors.Join(failed, err, s.Wait())
		sold += w.Sold
	}
	return sold, failed
}
