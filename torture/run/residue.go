package run

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/worker"
)

// heartbeat is how long the place of a waiter counts that is heard of no more, and a bit.
const heartbeat = 6 * time.Second

// residue lists what is left when all that ends by itself has ended.
func (r *run) residue(ctx context.Context) ([]string, error) {
	rest(ctx, max(r.lease+r.lease/2, heartbeat))
	var left []string
	var looked error
	// Before we come as a client ourselves.
	if err := r.stage.Play(func(testing.TB) { left, looked = r.engine.Left(ctx) }); err != nil || looked != nil {
		return nil, cmp.Or(err, looked)
	}
	locks, err := interlock.Open(ctx, r.engine.Direct(), &interlock.Options{Lease: r.lease, ClientName: "coordinator"})
	if err != nil {
		return nil, err
	}
	for info, err := range locks.List(ctx, "") {
		if err != nil {
			return nil, errors.Join(err, locks.Close())
		}
		left = append(left, fmt.Sprintf("%s: %d holders, %d waiters", info.Name, len(info.Holders), len(info.Waiters)))
	}
	if slices.Contains(r.can.Shares, history.Permits) {
		left = append(left, missingPermits(ctx, locks, 2*r.lease)...)
	}
	return left, locks.Close()
}

// missingPermits says what is missing if, when everybody has left, not all permits of the semaphore can be had at once.
func missingPermits(ctx context.Context, locks *interlock.Client, patience time.Duration) []string {
	wait, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	all, err := locks.Semaphore(worker.Semaphore, worker.Permits, nil).Acquire(wait, worker.Permits)
	if err == nil {
		err = all.Unlock(wait)
	}
	if err != nil {
		return []string{
			fmt.Sprintf("%s: not all %d of them are there at the end: %v", worker.Semaphore, worker.Permits, err),
		}
	}
	return nil
}
