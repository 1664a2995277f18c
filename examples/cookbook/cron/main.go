// Cron runs a job once in a fleet. Each host starts it by its own clock, at about the same time:
//
//	go run ./cookbook/cron
//
// The hosts that find the lock held skip the job. MinHold keeps the lock closed after a job that is shorter than the
// difference between the hosts' clocks: without it a host whose clock is late would run the job once more.
package main

import (
	"context"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/examples/internal/recipe"
)

func main() { recipe.Main(run) }

func run(ctx context.Context, url string, out io.Writer) error {
	fleet, err := recipe.Open(ctx, url, "host-1", "host-2", "host-3")
	if err != nil {
		return err
	}
	defer fleet.Close()
	var runs atomic.Int32
	err = fleet.Each(ctx, func(ctx context.Context, h recipe.Host) error {
		return tick(ctx, h, out, func(context.Context) error { // the job, which ends at once
			runs.Add(1)
			return nil
		})
	})
	if err != nil {
		return err
	}
	if n := runs.Load(); n != 1 {
		return fmt.Errorf("the job ran %d times, not once", n)
	}
	return nil
}

// tick is what the scheduler of each host calls.
func tick(ctx context.Context, h recipe.Host, out io.Writer, job func(context.Context) error) error {
	// More than the hosts' clocks differ by, and less than the time until the next tick.
	nightly := h.Locks.Mutex("nightly-report", &interlock.LockOptions{MinHold: 5 * time.Second})
	ran, err := nightly.TryDo(ctx, job) // a loss ends the job's context
	switch {
	case err != nil:
		return err // the engine cannot be reached, or the job failed: alert, or wait for the next tick
	case ran:
		fmt.Fprintln(out, h.Name, "ran the report")
	default:
		fmt.Fprintln(out, h.Name, "skipped it: another host has it")
	}
	return nil
}
