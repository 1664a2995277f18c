package locktest

import (
	"context"
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
)

// Canceller cancels acquisitions at random moments, and measures how soon the lock is free then.
type Canceller struct {
	Asks  *interlock.Client // whose acquisitions are cancelled; its observer is that of Watch
	Holds *interlock.Client // in front of them
	Tries *interlock.Client // to see that the lock is free

	Watch *News
	Rand  *rand.Rand
	Trip  time.Duration // what a lock and an unlock take, within which a moment is chosen
	// Late reports whether the lock should have been free by now; began is when the cancelled acquisition had returned.
	Late func(began time.Time) bool
}

// Measure sets Trip to what a lock and an unlock take now, which also loads scripts and prepares statements.
func (c *Canceller) Measure(t testing.TB, most time.Duration) {
	t.Helper()
	begin := time.Now()
	MustUnlock(t, MustLock(t, c.Asks, "once"))
	c.Trip = min(time.Since(begin), most)
}

// FreeAfter returns how long it takes until another client's try succeeds.
func (c *Canceller) FreeAfter(t testing.TB, name string) time.Duration {
	t.Helper()
	begin := time.Now()
	for {
		late := c.Late(begin) // before the try, which may be slow itself
		l, err := c.Tries.TryLock(Patient(t), name)
		took := time.Since(begin)
		if err == nil {
			MustUnlock(t, l)
			return took
		}
		if !errors.Is(err, interlock.ErrHeld) || late {
			t.Fatalf("%q is not free %v after a cancelled Lock had returned: %v", name, took, err)
		}
		<-time.After(100 * time.Microsecond)
	}
}

// Uncontended cancels an acquisition of a free lock.
func (c *Canceller) Uncontended(t testing.TB, name string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	time.AfterFunc(c.moment(), cancel)
	c.lock(ctx, t, name)
}

// Contended cancels a wait around the moment in which it is granted.
func (c *Canceller) Contended(t testing.TB, name string) {
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	held := MustLock(t, c.Holds, name)
	ended := make(chan struct{})
	go func() { // ends with ctx
		defer close(ended)
		c.lock(ctx, t, name)
	}()
	Receive(t, "the wait to be queued", c.Watch.Queued)
	cancelAt, unlockAt := time.After(c.moment()), time.After(c.moment())
	for range 2 {
		select {
		case <-cancelAt:
			cancel()
		case <-unlockAt:
			MustUnlock(t, held)
		}
	}
	Receive(t, "the cancelled Lock to return", ended)
}

// moment returns a random one within the time that a lock and an unlock take.
func (c *Canceller) moment() time.Duration { return time.Duration(c.Rand.Int64N(int64(c.Trip) + 1)) }

// lock unlocks what a Lock has brought before it was cancelled. It may run in a goroutine, which must not end the test.
func (c *Canceller) lock(ctx context.Context, t testing.TB, name string) {
	t.Helper()
	l, err := c.Asks.Lock(ctx, name)
	switch {
	case err == nil:
		if err := l.Unlock(Patient(t)); err != nil {
			t.Errorf("Unlock %q: %v", name, err)
		}
	case !errors.Is(err, context.Canceled):
		t.Errorf("the cancelled Lock says %v", err)
	}
}
