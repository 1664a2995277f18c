// Handler serves requests that change orders, one per order at a time, each within a deadline:
//
//	go run ./cookbook/handler
//
// A request that cannot have its order in time answers 409, so that no requests pile up behind a slow one. One that
// runs past its deadline answers 503, and leaves the order free.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/examples/internal/recipe"
)

const deadline = 500 * time.Millisecond // for the work

// request is for one order. Its client waits for the lock no longer than patience.
type request struct {
	order    string
	patience time.Duration
	work     func(context.Context) error
}

// handle does the work on one order and returns the status for the client.
func handle(ctx context.Context, locks *interlock.Client, r request) (int, error) {
	waiting, cancel := context.WithTimeout(ctx, r.patience)
	defer cancel()
	// Class gives metrics one series for all orders.
	lease, err := locks.Mutex("order:"+r.order, &interlock.LockOptions{Class: "order:{id}"}).Lock(waiting)
	switch {
	case errors.Is(err, interlock.ErrHeld):
		return 409, nil
	case err != nil:
		return 503, err
	}
	working, stop := context.WithTimeout(lease.Context(ctx), deadline) // also ends when the lock is lost
	defer stop()
	err = r.work(working)
	// The request's context may have ended. The lock must be released even then.
	releasing, done := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
	defer done()
	if unlocked := lease.Unlock(releasing); unlocked != nil {
		return 503, errors.Join(err, unlocked) // lost meanwhile: the work may overlap another's
	}
	switch {
	case errors.Is(err, context.DeadlineExceeded):
		return 503, nil
	case err != nil:
		return 500, err
	}
	return 200, nil
}

func main() { recipe.Main(run) }

func run(ctx context.Context, url string, out io.Writer) error {
	fleet, err := recipe.Open(ctx, url, "server-1", "server-2")
	if err != nil {
		return err
	}
	defer fleet.Close()
	one, two := fleet[0].Locks, fleet[1].Locks
	expect := func(what string, want int, locks *interlock.Client, r request) error {
		status, err := handle(ctx, locks, r)
		if err == nil && status != want {
			err = fmt.Errorf("%s: status %d, want %d", what, status, want)
		}
		fmt.Fprintf(out, "%s: %d\n", what, status)
		return err
	}
	const patient = 20 * time.Second // a busy machine is no reason for a 409 here
	quick := func(context.Context) error { return nil }
	slow := func(ctx context.Context) error { <-ctx.Done(); return ctx.Err() }

	other, err := one.Lock(ctx, "order:17") // a request that takes its time
	if err != nil {
		return err
	}
	err = errors.Join(
		expect("order 17, while another has it", 409, two, request{"17", time.Second, quick}),
		expect("order 18 meanwhile", 200, two, request{"18", patient, quick}),
		other.Unlock(ctx),
		expect("order 17, too slow", 503, one, request{"17", patient, slow}),
		expect("order 17 after that", 200, two, request{"17", patient, quick}),
	)
	return err
}
