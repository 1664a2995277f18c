package compare

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/bench/tap"
)

const (
	// beforeRelease is how long clients are given until all wait.
	beforeRelease = 1500 * time.Millisecond

	// releases is how many are averaged: clients hear other things too, now and then. After each of them it is listened
	// for a while, and for as long before it.
	releases  = 60
	listening = 10 * time.Millisecond

	// stagger is between two clients that begin to wait; some open a connection for it.
	stagger = 10 * time.Millisecond
)

// wakeups counts how many of many waiting clients hear something from the server because of one release. Each of them
// has a tap of its own.
func (s *subject) wakeups(ctx context.Context, row *Row) error {
	switch {
	case s.engine == "mem":
		row.Woken = isNone("nothing travels that could be counted")
		return nil
	case s.server == nil:
		return s.switches(ctx, row)
	}
	s.Say("  " + s.label + ": wake-ups")
	c := &crowd{subject: s}
	err := c.run(ctx, row)
	return errors.Join(err, c.close())
}

// crowd is clients that want one lock.
type crowd struct {
	*subject
	taps    []tap.Taps // of each client its own
	clients []*interlock.Client
	stop    context.CancelFunc
	waits   sync.WaitGroup
}

// turn is a client that has got the lock.
type turn struct {
	client int
	held   *interlock.Lease
}

const crowdLock = "crowd"

func (c *crowd) run(ctx context.Context, row *Row) error {
	waiting, stop := context.WithCancel(ctx)
	c.stop = stop
	got := make(chan turn, 1)
	// The first has the lock, and as many as are asked for wait at the last release.
	for range 1 + c.Waiters + releases {
		if err := c.join(waiting, got); err != nil {
			return err
		}
	}
	if err := pause(ctx, beforeRelease); err != nil {
		return err
	}
	var calm, woken int
	for range releases {
		now, err := next(ctx, got)
		if err != nil {
			return err
		}
		if err := pause(ctx, listening); err != nil { // what it says itself after it got the lock
			return err
		}
		n, err := c.hear(ctx, now.client, func() error { return nil })
		calm += n
		if err != nil {
			return err
		}
		n, err = c.hear(ctx, now.client, func() error { return now.held.Unlock(ctx) })
		woken += n
		if err != nil {
			return err
		}
	}
	row.Woken = Cell{Values: []float64{max(0, float64(woken-calm)/releases)}}
	if calm > 0 {
		row.Woken.Why = fmt.Sprintf("clients hear other things too while they wait: what %.2g clients heard in the %v "+
			"before a release is taken off what %.2g heard in as long after it",
			float64(calm)/releases, listening, float64(woken)/releases)
	}
	return nil
}

// next returns who has the lock now.
func next(ctx context.Context, got <-chan turn) (turn, error) {
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	select {
	case t := <-got:
		return t, nil
	case <-ctx.Done():
		return turn{}, fmt.Errorf("nobody got the lock: %w", ctx.Err())
	}
}

// join adds a client that wants the lock, and says so when it has it. Whoever has it at the end loses it with its
// client.
func (c *crowd) join(ctx context.Context, got chan<- turn) error {
	t, err := tap.New(c.addr())
	if err != nil {
		return err
	}
	c.taps = append(c.taps, t)
	client, err := c.open(ctx, t.Addr(), 0)
	if err != nil {
		return err
	}
	c.clients = append(c.clients, client)
	number := len(c.clients) - 1
	c.waits.Go(func() { // ends with the lock, or with ctx
		held, err := client.Lock(ctx, crowdLock)
		if err != nil {
			return
		}
		select {
		case got <- turn{number, held}:
		case <-ctx.Done():
		}
	})
	return pause(ctx, stagger)
}

// hear counts the clients other than one that hear something after what is done.
func (c *crowd) hear(ctx context.Context, except int, do func() error) (int, error) {
	before := make([]int64, len(c.taps))
	for i, t := range c.taps {
		before[i] = t.Heard()
	}
	if err := do(); err != nil {
		return 0, err
	}
	if err := pause(ctx, listening); err != nil {
		return 0, err
	}
	n := 0
	for i, t := range c.taps {
		if i != except && t.Heard() > before[i] {
			n++
		}
	}
	return n, nil
}

// close ends the waits, the clients and the taps.
func (c *crowd) close() error {
	if c.stop != nil {
		c.stop()
	}
	c.waits.Wait()
	errs := make([]error, len(c.clients))
	var all sync.WaitGroup
	for i, client := range c.clients {
		all.Go(func() { errs[i] = client.Close() })
	}
	all.Wait()
	for _, t := range c.taps {
		t.Close()
	}
	return errors.Join(errs...)
}
