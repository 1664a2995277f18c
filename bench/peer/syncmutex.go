package peer

import (
	"context"
	"sync"
)

// syncMutex is the other end of the scale: it knows no other process, no owner, no context and no token.
func syncMutex() Spec {
	return Spec{
		Name:  "sync.Mutex",
		Does:  "the standard library's mutex, inside one process",
		Alone: true,
		Open:  func(context.Context, Place) (Peer, error) { return new(plain), nil },
	}
}

type plain struct{ mu sync.Mutex }

// Worker returns p itself: a sync.Mutex does not know who uses it.
func (p *plain) Worker() (Worker, error) { return p, nil }

// Close has nothing to close.
func (*plain) Close() error { return nil }

// Lock waits; ctx does not end the wait.
func (p *plain) Lock(context.Context) error {
	p.mu.Lock()
	return nil
}

// Unlock unlocks.
func (p *plain) Unlock(context.Context) error {
	p.mu.Unlock()
	return nil
}
