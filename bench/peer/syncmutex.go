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
		Open:  func(context.Context, Place) (Peer, error) { return &plain{byName: map[string]*sync.Mutex{}}, nil },
	}
}

type plain struct{ byName map[string]*sync.Mutex }

// Worker returns the same for everybody: a sync.Mutex does not know who uses it.
func (p *plain) Worker(name string) (Worker, error) {
	if p.byName[name] == nil {
		p.byName[name] = new(sync.Mutex)
	}
	return plainWorker{p.byName[name]}, nil
}

// Close has nothing to close.
func (*plain) Close() error { return nil }

type plainWorker struct{ mu *sync.Mutex }

// Lock waits; ctx does not end the wait.
func (w plainWorker) Lock(context.Context) error {
	w.mu.Lock()
	return nil
}

// Unlock unlocks.
func (w plainWorker) Unlock(context.Context) error {
	w.mu.Unlock()
	return nil
}
