package main

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/examples/internal/host"
	"github.com/interlock-go/interlock/examples/internal/part"
	_ "github.com/interlock-go/interlock/mysqllock" // opens mysql://
	_ "github.com/interlock-go/interlock/pglock"    // opens postgres://
	_ "github.com/interlock-go/interlock/redislock" // opens redis://
)

// sellerPart is the part of a process that sells.
const sellerPart = "seller"

// order is what a seller is started with.
type order struct {
	Place      place
	Way        string
	Goroutines int
	Meet       bool // stop once between the first read and its write, until all others have read too
}

// word is what a seller says: that it has read and waits for the others, and at the end how many it has sold. What it
// is told in between means that it may go on.
type word struct {
	HasRead bool
	Sold    int
}

// sell sells until nothing is left.
func sell(ctx context.Context, s *part.Stage) error {
	var o order
	if err := s.Arg(&o); err != nil {
		return err
	}
	w, err := wayOf(o.Way)
	if err != nil {
		return err
	}
	stock, err := o.Place.open()
	if err != nil {
		return err
	}
	defer stock.close()
	locks, err := interlock.Open(ctx, host.LockURL(o.Place.Server, o.Place.Addr), nil)
	if err != nil {
		return err
	}
	defer locks.Close()
	one := w.prepare(stock, locks)
	sold, err := first(ctx, s, one, o.Meet)
	if err != nil {
		return err
	}
	more, err := rest(ctx, one, o.Goroutines)
	if err != nil {
		return err
	}
	return s.Send(word{Sold: sold + more})
}

// first sells one item, and meets the other sellers between its read and its write.
func first(ctx context.Context, s *part.Stage, one deduct, meet bool) (int, error) {
	between := func() error {
		if !meet {
			return nil
		}
		var goOn word
		return errors.Join(s.Send(word{HasRead: true}), s.Receive(&goOn))
	}
	sold, err := one(ctx, between)
	if !sold || err != nil {
		return 0, err
	}
	return 1, nil
}

// rest sells what is left, with several goroutines.
func rest(ctx context.Context, one deduct, goroutines int) (int, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var sold atomic.Int64
	var all sync.WaitGroup
	for range goroutines {
		all.Go(func() {
			for {
				ok, err := one(ctx, nil)
				if err != nil {
					cancel(err)
				}
				if !ok || err != nil {
					return
				}
				sold.Add(1)
			}
		})
	}
	all.Wait()
	return int(sold.Load()), context.Cause(ctx)
}
