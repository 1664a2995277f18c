package peer

import (
	"context"
	"errors"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// lockName is the name of the one lock.
const lockName = "bench"

// locks is interlock's client on some engine, with the options that a user gets who sets none.
type locks struct {
	client *interlock.Client
	engine driver.Driver // nil if the client has opened it itself
	space  string        // what the names of its locks begin with
}

func onEngine(d driver.Driver) (Peer, error) {
	c, err := interlock.New(d, nil)
	if err != nil {
		return nil, errors.Join(err, d.Close())
	}
	return &locks{client: c, engine: d}, nil
}

// Worker returns a hold's place; all workers share the client, as goroutines of one program do.
func (l *locks) Worker() (Worker, error) { return l.WorkerOn(lockName) }

// WorkerOn is Worker on another lock.
func (l *locks) WorkerOn(name string) (Worker, error) {
	return &lease{mutex: l.client.Mutex(l.space+name, nil)}, nil
}

// Hold takes a lock, which the client renews.
func (l *locks) Hold(ctx context.Context, name string) (Hold, error) {
	held, err := l.client.Lock(ctx, l.space+name)
	if err != nil {
		return nil, err
	}
	return keptLease{held}, nil
}

// Close closes client and engine.
func (l *locks) Close() error {
	err := l.client.Close()
	if l.engine != nil {
		err = errors.Join(err, l.engine.Close())
	}
	return err
}

// lease is one goroutine's hold.
type lease struct {
	mutex *interlock.Mutex
	held  *interlock.Lease
}

// Lock is Mutex.Lock.
func (l *lease) Lock(ctx context.Context) (err error) {
	l.held, err = l.mutex.Lock(ctx)
	return err
}

// Unlock is Lease.Unlock.
func (l *lease) Unlock(ctx context.Context) error { return l.held.Unlock(ctx) }

// keptLease is a lease that is held for long.
type keptLease struct{ held *interlock.Lease }

// Release is Lease.Unlock.
func (k keptLease) Release(ctx context.Context) error {
	err := k.held.Unlock(ctx)
	if errors.Is(err, interlock.ErrLost) {
		return ErrLost
	}
	return err
}
