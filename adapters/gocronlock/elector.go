package gocronlock

import (
	"context"
	"errors"
	"fmt"

	"github.com/interlock-go/interlock"
)

// ErrNotLeader says that another scheduler leads. The error that matches it says who, if the engine tells.
var ErrNotLeader = errors.New("gocronlock: another scheduler leads")

// Elector is a gocron.Elector. It leads as long as it holds a mutex, which it takes when a job is due and nobody has
// it, and keeps until it resigns, its process ends, or the lock is lost. Then the next scheduler that has a job due
// leads; how soon after a crash is a matter of the lease. It is safe for concurrent use, and may be shared by
// schedulers of one process.
type Elector struct {
	m *interlock.Mutex

	// turn is held, as its one element, by whoever asks the engine: a mutex would keep others beyond their contexts.
	turn  chan struct{}
	lease *interlock.Lease // guarded by turn; nil if it does not lead
}

// NewElector returns an Elector that leads while it holds m. Schedulers that elect one of them have a mutex of the same
// name. Its lease is how long the jobs rest after a crash of the leader. A nil m panics.
func NewElector(m *interlock.Mutex) *Elector {
	if m == nil {
		panic("gocronlock: NewElector needs a mutex")
	}
	return &Elector{m: m, turn: make(chan struct{}, 1)}
}

// IsLeader returns nil if this scheduler leads: it asks no engine if it does already, and takes the mutex if it
// is free. The error matches ErrNotLeader if another leads, and is the engine's if it cannot be told; then the
// job does not run either.
func (e *Elector) IsLeader(ctx context.Context) error {
	if err := e.begin(ctx); err != nil {
		return err
	}
	defer e.end()
	if e.lease != nil {
		if e.lease.Err() == nil {
			return nil
		}
		// It was lost, and may be free again. There is nothing to release: Unlock only says so once more.
		_ = e.lease.Unlock(ctx)
		e.lease = nil
	}
	lease, err := e.m.TryLock(ctx)
	if errors.Is(err, interlock.ErrHeld) {
		return fmt.Errorf("%w: %w", ErrNotLeader, err)
	}
	if err != nil {
		return err
	}
	e.lease = lease
	return nil
}

// Resign gives the lead to whoever asks for it next, this scheduler included. Call it after the scheduler's shutdown,
// so that the others need not wait for the lease to run out. It returns nil if this scheduler does not lead.
func (e *Elector) Resign(ctx context.Context) error {
	if err := e.begin(ctx); err != nil {
		return err
	}
	defer e.end()
	if e.lease == nil {
		return nil
	}
	lease := e.lease
	e.lease = nil
	if err := lease.Unlock(ctx); !errors.Is(err, interlock.ErrLost) {
		return err
	}
	return nil // another leads already
}

func (e *Elector) begin(ctx context.Context) error {
	select {
	case e.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (e *Elector) end() { <-e.turn }
