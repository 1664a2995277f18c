package main

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"

	"github.com/interlock-go/interlock"
)

// lockName is what all processes lock that sell the item.
const lockName = "stock:" + item

// way is a way of deducting.
type way struct {
	name   string
	sound  bool // never sells more than there is
	alone  bool // runs in one process only
	letsIn int  // how many processes may stand between read and write at once; 0 is all

	// prepare returns what one process deducts with.
	prepare func(s shelf, locks *interlock.Client) deduct
}

// deduct sells one item, and reports false when none was left. It calls between, if not nil, between read and write.
type deduct func(ctx context.Context, between func() error) (sold bool, err error)

var ways = []way{
	{name: "no lock", prepare: withoutLock},
	{name: "sync.Mutex, one process", sound: true, alone: true, letsIn: 1, prepare: underMutex},
	{name: "sync.Mutex", prepare: underMutex},
	{name: "interlock", sound: true, letsIn: 1, prepare: underLock},
	{name: "interlock, nested", sound: true, letsIn: 1, prepare: underNestedLock},
	{name: "atomic update", sound: true, letsIn: 1, prepare: atomically},
}

func wayOf(name string) (way, error) {
	for _, w := range ways {
		if w.name == name {
			return w, nil
		}
	}
	return way{}, fmt.Errorf("there is no way %q", name)
}

// readCheckWrite is what must not be done by two at once: between the read and the write the number may change.
func readCheckWrite(ctx context.Context, s shelf, between func() error) (bool, error) {
	number, err := s.read(ctx)
	if err != nil {
		return false, err
	}
	if between != nil {
		if err := between(); err != nil {
			return false, err
		}
	}
	if number < 1 {
		return false, nil
	}
	return true, s.write(ctx, number-1)
}

func withoutLock(s shelf, _ *interlock.Client) deduct {
	return func(ctx context.Context, between func() error) (bool, error) { return readCheckWrite(ctx, s, between) }
}

func underMutex(s shelf, _ *interlock.Client) deduct {
	var mu sync.Mutex // of this process: the others have their own
	return func(ctx context.Context, between func() error) (bool, error) {
		mu.Lock()
		defer mu.Unlock()
		return readCheckWrite(ctx, s, between)
	}
}

func underLock(s shelf, locks *interlock.Client) deduct {
	return func(ctx context.Context, between func() error) (sold bool, err error) {
		err = locks.Do(ctx, lockName, func(ctx context.Context) error {
			// ctx ends when the lock is lost, and with it the write that would come too late.
			sold, err = readCheckWrite(ctx, s, between)
			return err
		})
		return sold, err
	}
}

// underNestedLock deducts in a function that takes the lock itself, called by one that holds it already. The owner is
// in the context, so the inner Lock re-enters instead of waiting for itself for ever.
func underNestedLock(s shelf, locks *interlock.Client) deduct {
	inner := underLock(s, locks)
	return func(ctx context.Context, between func() error) (sold bool, err error) {
		err = locks.Do(ctx, lockName, func(ctx context.Context) error {
			sold, err = inner(ctx, between)
			return err
		})
		return sold, err
	}
}

// atomically leaves the check to the server. What comes in vain, once all is sold, does not get as far as the server.
func atomically(s shelf, _ *interlock.Client) deduct {
	var soldOut atomic.Bool // goods that come in again need another way to hear of it, such as a message
	return func(ctx context.Context, between func() error) (bool, error) {
		if soldOut.Load() {
			return false, nil
		}
		if between != nil { // there is no between: the check and the write are one step
			if err := between(); err != nil {
				return false, err
			}
		}
		err := s.add(ctx, -1)
		if errors.Is(err, errTooFew) {
			soldOut.Store(true)
			return false, nil
		}
		return err == nil, err
	}
}
