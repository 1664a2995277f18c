package peer

import (
	"context"
	"time"

	"github.com/redis/rueidis"
	"github.com/redis/rueidis/rueidislock"
)

func rueidisLock() Spec {
	return Spec{
		Name: "rueidislock",
		Does: "rueidislock with one key and NOLOOP tracking, as its documentation says for one server: a script to " +
			"acquire, an invalidation that wakes all waiters, goroutines and a context for each hold, which it " +
			"renews",
		Redis: true,
		Open:  openLocker(true),
	}
}

func rueidisLockLoop() Spec {
	return Spec{
		Name: "rueidislock-loop",
		Does: "the same without NOLOOP, which is its default: each renewal wakes its sender, which renews " +
			"again",
		Redis: true,
		Open:  openLocker(false),
	}
}

func openLocker(noLoop bool) func(context.Context, Place) (Peer, error) {
	return func(_ context.Context, at Place) (Peer, error) {
		l, err := rueidislock.NewLocker(rueidislock.LockerOption{
			ClientOption:   rueidis.ClientOption{InitAddress: []string{at.Redis}},
			KeyMajority:    1,
			NoLoopTracking: noLoop,
			KeyValidity:    at.Lease, // zero is its default of 5 s
		})
		if err != nil {
			return nil, err
		}
		return &locker{l}, nil
	}
}

type locker struct{ locker rueidislock.Locker }

// Worker returns a hold's place; all workers share the Locker, which is what its in-process queue is for.
func (l *locker) Worker(name string) (Worker, error) {
	return &lockerWorker{locker: l.locker, name: name}, nil
}

// Hold takes a lock, which the Locker renews.
func (l *locker) Hold(ctx context.Context, name string) (Hold, error) {
	// The hold ends with the context of the call, so that one must go on; only the attempt ends with ctx.
	holding, end := context.WithCancel(context.WithoutCancel(ctx))
	attempt := context.AfterFunc(ctx, end)
	w := &lockerWorker{locker: l.locker, name: name, end: end}
	if err := w.Lock(holding); err != nil {
		end()
		return nil, err
	}
	attempt()
	return w, nil
}

// Close closes the Locker.
func (l *locker) Close() error {
	l.locker.Close()
	return nil
}

type lockerWorker struct {
	locker rueidislock.Locker
	name   string
	held   context.Context //nolint:containedctx // it is how a Locker tells of a loss
	free   context.CancelFunc
	end    context.CancelFunc // of what Hold made
}

// stalled is how long a wait without an end of its own may last before it is begun anew.
const stalled = 2 * time.Second

// Lock is Locker.WithContext. If the answer of the server is late by 20 ms, that waits for ever for a lock that is
// free, so a wait that nobody else would end is ended here and begun anew.
func (w *lockerWorker) Lock(ctx context.Context) (err error) {
	if ctx.Done() != nil {
		w.held, w.free, err = w.locker.WithContext(ctx, w.name)
		return err
	}
	for {
		attempt, end := context.WithCancel(ctx)
		bound := time.AfterFunc(stalled, end)
		w.held, w.free, err = w.locker.WithContext(attempt, w.name)
		if bound.Stop() || err == nil {
			return err // the end of the hold is that of its context, so it is not ended here
		}
	}
}

// Unlock releases, which tells nothing.
func (w *lockerWorker) Unlock(context.Context) error {
	w.free()
	return nil
}

// Release is Unlock, and says whether the context had ended before.
func (w *lockerWorker) Release(ctx context.Context) error {
	lost := w.held.Err() != nil
	err := w.Unlock(ctx)
	w.end()
	if lost {
		return ErrLost
	}
	return err
}
