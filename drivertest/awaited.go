package drivertest

import (
	"context"
	"sync"
)

// Awaited returns ctx as a context that tells when somebody begins to wait for its end. Everything that comes before
// the wait has happened by then. It is for tests.
func Awaited(ctx context.Context) (awaited context.Context, begun <-chan struct{}) {
	a := &waitedFor{Context: ctx, begun: make(chan struct{})}
	return a, a.begun
}

type waitedFor struct {
	context.Context //nolint:containedctx // it is a context

	begun chan struct{}
	once  sync.Once
}

// Done notes that somebody begins to wait.
func (a *waitedFor) Done() <-chan struct{} {
	a.once.Do(func() { close(a.begun) })
	return a.Context.Done()
}
