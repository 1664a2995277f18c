package interlock

import (
	"context"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/shell"
)

// Work under a lock: Do takes it, calls a function, and gives it back, whatever the function does. Every kind of lock
// does this in the same way (DoUnder, TryDoUnder).

// Do waits for the mutex of that name, calls fn while it holds it, and releases it. fn's context is cancelled when the
// hold is lost. Do returns fn's error, joined with the *LostError after a loss. For the rest see [Mutex.Do].
func (c *Client) Do(ctx context.Context, name string, fn func(ctx context.Context) error) error {
	return c.Mutex(name, nil).Do(ctx, fn)
}

// TryDo is Do if the mutex of that name is free. It returns false and no error if another owner holds it; see
// [Mutex.TryDo].
func (c *Client) TryDo(ctx context.Context, name string, fn func(ctx context.Context) error) (bool, error) {
	return c.Mutex(name, nil).TryDo(ctx, fn)
}

// Do calls fn while it holds the mutex, and releases it whatever fn does. fn's context is cancelled when ctx is and the
// moment the hold is lost; a Lock with it re-enters.
//
// Do returns fn's error, joined with the *LostError if the hold was lost while fn ran, also when fn returned nil. A
// loss that fn has returned itself, as the cause of its context, is not repeated. When fn panics the mutex is released,
// and the panic goes on.
//
// The release does not depend on ctx, and Do waits for it for at most Options.CloseTimeout. fn's work was protected, so
// a release that is not confirmed by then goes on in the background and is no error of Do. Observer.Released is told. A
// release that the engine refuses (ErrRefused) goes on there too, but is an error of Do, joined with fn's. Others wait
// until somebody has mended what the engine says, or the hold has ended by itself.
func (m *Mutex) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return shell.DoUnder(ctx, m.inner(), fn)
}

// TryDo is Do if the mutex is free. It returns false and no error if another owner holds it: fn was not called. Every
// other failure to take it is an error.
func (m *Mutex) TryDo(ctx context.Context, fn func(ctx context.Context) error) (bool, error) {
	return shell.TryDoUnder(ctx, m.inner(), fn)
}

// Do calls fn while it holds the lock for writing, and releases it; see [Mutex.Do].
func (m *RWMutex) Do(ctx context.Context, fn func(ctx context.Context) error) error {
	return shell.DoUnder(ctx, m.modeMutex(driver.Exclusive), fn)
}

// RDo calls fn while it holds the lock for reading, beside other readers, and releases it; see [Mutex.Do].
func (m *RWMutex) RDo(ctx context.Context, fn func(ctx context.Context) error) error {
	return shell.DoUnder(ctx, m.modeMutex(driver.Shared), fn)
}

// TryDo is Do if nobody holds the lock or waits for it. It returns false and no error otherwise; see [Mutex.TryDo].
func (m *RWMutex) TryDo(ctx context.Context, fn func(ctx context.Context) error) (bool, error) {
	return shell.TryDoUnder(ctx, m.modeMutex(driver.Exclusive), fn)
}

// TryRDo is RDo if nobody writes, and nobody waits. It returns false and no error otherwise; see [Mutex.TryDo].
func (m *RWMutex) TryRDo(ctx context.Context, fn func(ctx context.Context) error) (bool, error) {
	return shell.TryDoUnder(ctx, m.modeMutex(driver.Shared), fn)
}

// Do waits for that number of permits, calls fn while it holds them, and gives them back; see [Semaphore.Acquire] and
// [Mutex.Do]. A Semaphore is not re-entrant: a Do inside fn takes permits of its own.
func (s *Semaphore) Do(ctx context.Context, permits int, fn func(ctx context.Context) error) error {
	return shell.DoUnder(ctx, s.permits(permits), fn)
}

// TryDo is Do if so many permits are free and nobody waits. It returns false and no error otherwise; see [Mutex.TryDo].
func (s *Semaphore) TryDo(ctx context.Context, permits int, fn func(ctx context.Context) error) (bool, error) {
	return shell.TryDoUnder(ctx, s.permits(permits), fn)
}
