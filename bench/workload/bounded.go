package workload

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock/bench/peer"
)

// bounded is a wait that was not allowed to last for ever.
type bounded struct {
	end  context.CancelFunc // to be called after the release: with some libraries a hold ends with its context
	hung bool               // it had not ended in time, and there is nothing to release
}

// lockWithin is worker.Lock for at most d. It takes no deadline: some libraries grant a lock for no longer than their
// context has.
func lockWithin(ctx context.Context, worker peer.Worker, d time.Duration) (bounded, error) {
	waiting, end := context.WithCancel(ctx)
	bound := time.AfterFunc(d, end)
	err := worker.Lock(waiting)
	inTime := bound.Stop()
	if err == nil {
		return bounded{end: end}, nil
	}
	end()
	if inTime {
		return bounded{}, err
	}
	return bounded{hung: true}, nil
}

// lockAtLast is lockWithin for a lock that is free or will be soon, tried again if the wait hangs.
func lockAtLast(ctx context.Context, worker peer.Worker) (end context.CancelFunc, err error) {
	const tries = 5
	for range tries {
		b, err := lockWithin(ctx, worker, mostWait)
		if err != nil {
			return nil, err
		}
		if !b.hung {
			return b.end, nil
		}
	}
	return nil, errors.New("a free lock is not to be had")
}
