// Saga takes an order through three services: reserve, charge, ship. A worker stands still after it has charged and
// before it has written that down, and another one goes on:
//
//	go run ./cookbook/saga
//
// The lock keeps two workers from one order. The journal checks the stamp, so a worker that was overtaken cannot
// write to it. The step that was not written down is done again; an idempotency key makes the bank charge once.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/examples/internal/recipe"
	"github.com/interlock-go/interlock/fence"
)

var steps = []string{"reserve", "charge", "ship"}

// journal has how many steps of the order are done: a row in a database, with a fence.SQLGuard.
type journal struct {
	guard fence.MemoryGuard
	done  int // guarded by guard
}

func (j *journal) read(stamp fence.Stamp) (done int, err error) {
	err = j.guard.Do("order:17", stamp, func() error { done = j.done; return nil })
	return done, err
}

func (j *journal) write(stamp fence.Stamp, done int) error {
	return j.guard.Do("order:17", stamp, func() error { j.done = done; return nil })
}

// services does each step once per idempotency key, however often it is asked, as payment services do.
type services struct {
	mu    sync.Mutex     // guards asked
	asked map[string]int // by idempotency key
}

func (s *services) call(key string) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.asked[key]++ // from the second time on it returns the first answer
}

// work does the steps that are left. after is called between a step and its note in the journal.
func work(ctx context.Context, h recipe.Host, opts *interlock.LockOptions, s *services, j *journal, out io.Writer,
	after func(step string, lease *interlock.Lease) error,
) (err error) {
	lease, err := h.Locks.Mutex("order:17", opts).Lock(ctx)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, lease.Unlock(context.WithoutCancel(ctx))) }()
	stamp, held := lease.Stamp()
	if !held {
		return lease.Err()
	}
	done, err := j.read(stamp)
	for ; err == nil && done < len(steps); done++ {
		step := steps[done]
		s.call("order-17/" + step) // the same key for each attempt, by whichever worker
		if err := after(step, lease); err != nil {
			return err
		}
		if err := j.write(stamp, done+1); err != nil {
			return err
		}
		fmt.Fprintf(out, "%s: %s done\n", h.Name, step)
	}
	return err
}

func main() { recipe.Main(run) }

func run(ctx context.Context, url string, out io.Writer) error {
	fleet, err := recipe.Open(ctx, url, "worker-1", "worker-2")
	if err != nil {
		return err
	}
	defer fleet.Close()
	j, s := new(journal), &services{asked: make(map[string]int)}
	stalls, finished := make(chan struct{}), make(chan struct{})
	err = fleet.Each(ctx, func(ctx context.Context, h recipe.Host) error {
		if h.Name == "worker-2" {
			defer close(finished)
			if err := recipe.Await(ctx, stalls); err != nil {
				return err
			}
			return work(ctx, h, nil, s, j, out, func(string, *interlock.Lease) error { return nil })
		}
		pause := func(step string, lease *interlock.Lease) error {
			if step != "charge" {
				return nil
			}
			close(stalls)
			return errors.Join(recipe.Await(ctx, lease.Lost()), recipe.Await(ctx, finished))
		}
		// MaxHold stands for a pause that is longer than the lease.
		err := work(ctx, h, &interlock.LockOptions{MaxHold: time.Second}, s, j, out, pause)
		if !errors.Is(err, fence.ErrStale) {
			return fmt.Errorf("the journal should refuse the overtaken worker, but: %w", err)
		}
		fmt.Fprintln(out, h.Name, "is refused: another worker has the order")
		return nil
	})
	if err != nil {
		return err
	}
	if n := s.asked["order-17/charge"]; n != 2 || j.done != len(steps) {
		return fmt.Errorf("asked %d times to charge, %d steps done", n, j.done)
	}
	fmt.Fprintln(out, "asked to charge twice, with one key: charged once")
	return nil
}
