package interlock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// asked is a local engine that records whether each Try had SkipHolder.
type asked struct {
	*memlock.Driver
	tries []bool // of each Try, whether it was SkipHolder
}

func (a *asked) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	if r.Try {
		a.tries = append(a.tries, r.SkipHolder)
	}
	return a.Driver.Acquire(ctx, r)
}

// To find out who holds a lock takes some engines long, so they are asked for it only if the caller gets to see it.
func TestTry_IsBrief_IfAWaitFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		engine := &asked{Driver: memlock.New(nil)}
		c := mustNew(t, engine, nil)
		other := mustNew(t, &asked{Driver: engine.Peer()}, nil)
		defer func() {
			if err := errors.Join(other.Close(), c.Close()); err != nil {
				t.Error(err)
			}
		}()
		for _, readers := range []bool{false, true} {
			l, err := other.Lock(t.Context(), "a")
			if err != nil {
				t.Fatal(err)
			}
			lock, try := c.Mutex("a", nil).Lock, c.Mutex("a", nil).TryLock
			if readers {
				lock, try = c.RWMutex("a", nil).RLock, c.RWMutex("a", nil).TryRLock
				mustUnlock(t, l)
				if l, err = other.RWMutex("a", nil).Lock(t.Context()); err != nil {
					t.Fatal(err)
				}
			}
			engine.tries = nil
			if _, err := try(t.Context()); !errors.Is(err, ErrHeld) {
				t.Errorf("TryLock: %v", err)
			}
			ctx, cancel := context.WithTimeout(t.Context(), time.Second)
			if _, err := lock(ctx); !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("Lock: %v", err)
			}
			cancel()
			if want := []bool{false, true}; !slices.Equal(engine.tries, want) {
				t.Errorf("readers %v: asked briefly %v, want %v", readers, engine.tries, want)
			}
			mustUnlock(t, l)
		}
	})
}
