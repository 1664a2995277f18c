package main

import (
	"context"

	"github.com/interlock-go/interlock"
)

// clerk holds the lock "ledger" all the time, in this process.
type clerk struct {
	locks  *interlock.Client
	events chan interlock.Event // renewals that failed or were late, and losses
}

// openClerk opens the clerk's client over a link, and takes the lock. The client has the observer as well.
func openClerk(ctx context.Context, link string, o *interlock.Observer) (*clerk, error) {
	c := &clerk{events: make(chan interlock.Event, 100)}
	tell := func(e interlock.Event) {
		select {
		case c.events <- e:
		default: // an Observer must not block, and one of a hundred is heard
		}
	}
	heard := &interlock.Observer{RenewalFailed: tell, Lost: tell, Renewed: func(e interlock.Event) {
		if e.Late {
			tell(e)
		}
	}}
	locks, err := interlock.Open(ctx, "redis://"+link, &interlock.Options{
		Lease: lease, Observer: interlock.JoinObservers(o, heard),
	})
	if err != nil {
		return nil, err
	}
	c.locks = locks
	if _, err := locks.Mutex("ledger", &interlock.LockOptions{Class: "ledger"}).Lock(ctx); err != nil {
		_ = locks.Close()
		return nil, err
	}
	return c, nil
}
