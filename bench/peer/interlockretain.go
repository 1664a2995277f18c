package peer

import (
	"context"
	"errors"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/bench/engined"
)

const (
	// retainFor is how long a lock is retained: longer than anything is measured.
	retainFor = time.Minute

	// retainers are the clients of interlockRetained. Each retains 1,024 locks at most, and there must be 10,000.
	retainers = 10
)

func interlockRetain() Spec {
	return Spec{
		Name: "interlock-redis-retain",
		Does: "interlock on redislock, where the client keeps a lock after Unlock for a minute, until another asks " +
			"(Retain)",
		Redis: true, Retains: true,
		Open: func(ctx context.Context, at Place) (Peer, error) {
			return openLocks(ctx, at, engined.Redis, interlock.Options{Retain: retainFor})
		},
	}
}

func interlockRetained() Spec {
	return Spec{
		Name: "interlock-redis-retained",
		Does: "ten such clients in one process, for more locks than the 1,024 that one client retains; such " +
			"a lock is not held but retained: it was taken and given back",
		Redis: true, Retains: true,
		Open: func(ctx context.Context, at Place) (Peer, error) {
			r := &retaining{}
			for range retainers {
				l, err := openLocks(ctx, at, engined.Redis, interlock.Options{Retain: retainFor})
				if err != nil {
					return nil, errors.Join(err, r.Close())
				}
				r.clients = append(r.clients, l)
			}
			return r, nil
		},
	}
}

// retaining is several clients that retain the locks that must be kept.
type retaining struct {
	clients []*locks
	taken   atomic.Uint64
}

// Worker is one of the first client.
func (r *retaining) Worker(name string) (Worker, error) { return r.clients[0].Worker(name) }

// Hold takes a lock and gives it back, so that one of the clients, each in its turn, retains it.
func (r *retaining) Hold(ctx context.Context, name string) (Hold, error) {
	l := r.clients[r.taken.Add(1)%uint64(len(r.clients))]
	token, err := l.takeAndGive(ctx, name)
	if err != nil {
		return nil, err
	}
	return &retainedLock{locks: l, name: name, token: token}, nil
}

// Close closes the clients, which give back what they retain.
func (r *retaining) Close() error {
	var errs []error
	for _, l := range r.clients {
		errs = append(errs, l.Close())
	}
	return errors.Join(errs...)
}

// takeAndGive returns the token of the hold that it had.
func (l *locks) takeAndGive(ctx context.Context, name string) (token uint64, err error) {
	held, err := l.client.Lock(ctx, name)
	if err != nil {
		return 0, err
	}
	token = held.Token()
	return token, held.Unlock(ctx)
}

// retainedLock is a lock that nobody holds and a client retains.
type retainedLock struct {
	*locks
	name  string
	token uint64
}

// Release takes the lock again. Whoever takes over a lock that was retained gets the next token of its block. Another
// token comes from the server: then the lock was not retained until now.
func (r *retainedLock) Release(ctx context.Context) error {
	token, err := r.takeAndGive(ctx, r.name)
	if err == nil && token != r.token+1 {
		return ErrLost
	}
	return err
}
