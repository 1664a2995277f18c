package main

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"os"
	"time"

	"github.com/interlock-go/interlock/examples/internal/part"
)

// The parts that this program plays in processes of its own.
const (
	gatePart     = "gate"
	consumerPart = "consumer"
	sweeperPart  = "sweeper"
)

var parts = map[string]func(context.Context, *part.Stage) error{
	gatePart: playGate, consumerPart: playConsumer, sweeperPart: playSweeper,
}

// role is what a part is started with.
type role struct {
	Site  site
	Name  string        // of a consumer
	Drain bool          // end when nothing is left
	Later time.Duration // what the sweeper sweeps: what will be overdue by then
	Most  int           // how often a consumer tries an order; 0 is mostDeliveries
	Stop  point         // where to stop once, say so, and wait to be told to go on, or to be killed
}

// word is what a part says, and what it is told.
type word struct {
	Reached point // it stands there
	Order   order // to the gate
	Answer  answer
	Err     string
	Done    bool
}

// halt returns what stops the part at its point.
func (r role) halt(s *part.Stage) passing {
	stopped := false
	return func(p point) {
		if p != r.Stop || stopped {
			return
		}
		stopped = true
		var goOn word
		if s.Send(word{Reached: p}) != nil || s.Receive(&goOn) != nil {
			os.Exit(1) // the parent is gone
		}
	}
}

// enter reads the role and opens its site.
func enter(ctx context.Context, s *part.Stage) (r role, o *office, err error) {
	if err := s.Arg(&r); err != nil {
		return r, nil, err
	}
	o, err = r.Site.open(ctx, r.Name)
	return r, o, err
}

// playGate answers orders until it is stopped.
func playGate(ctx context.Context, s *part.Stage) error {
	r, o, err := enter(ctx, s)
	if err != nil {
		return err
	}
	defer o.close()
	g := &gate{stock: o.stock, queue: o.queue, at: r.halt(s)}
	for {
		var in word
		if err := s.Receive(&in); errors.Is(err, io.EOF) {
			return nil
		} else if err != nil {
			return err
		}
		a, err := g.order(ctx, in.Order)
		out := word{Answer: a}
		if err != nil {
			out.Err = err.Error()
		}
		if err := s.Send(out); err != nil {
			return err
		}
	}
}

func playConsumer(ctx context.Context, s *part.Stage) error {
	r, o, err := enter(ctx, s)
	if err != nil {
		return err
	}
	defer o.close()
	c := &consumer{stock: o.stock, ledger: o.ledger, queue: o.queue, at: r.halt(s), log: quiet(), most: r.Most}
	if err := c.run(ctx, r.Drain); err != nil || ctx.Err() != nil {
		return err
	}
	return s.Send(word{Done: true})
}

func playSweeper(ctx context.Context, s *part.Stage) error {
	r, o, err := enter(ctx, s)
	if err != nil {
		return err
	}
	defer o.close()
	sw := &sweeper{stock: o.stock, locks: o.locks, at: r.halt(s)}
	if _, err := sw.sweep(ctx, r.Later); err != nil {
		return err
	}
	return s.Send(word{Done: true})
}

// quiet logs to standard error if FLASHSALE_LOG is set: that an order will come again is no news
// while servers are killed.
func quiet() *slog.Logger {
	if os.Getenv("FLASHSALE_LOG") == "" {
		return slog.New(slog.DiscardHandler)
	}
	return slog.New(slog.NewTextHandler(os.Stderr, nil))
}
