package certlock_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/certlock"
	_ "github.com/interlock-go/interlock/memlock"
)

// server is one of a fleet.
func server(t *testing.T) (*certlock.Locker, *interlock.Client) {
	t.Helper()
	c, err := interlock.Open(t.Context(), "mem://"+t.Name(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return certlock.New(c, ""), c
}

func TestLock_ExcludesOtherServersAndOtherGoroutines(t *testing.T) {
	a, _ := server(t)
	b, _ := server(t)
	inside, most := 0, 0
	var all sync.WaitGroup
	for i := range 20 {
		l := []*certlock.Locker{a, b}[i%2]
		all.Go(func() {
			if err := l.Lock(t.Context(), "example.com"); err != nil {
				t.Error(err)
				return
			}
			inside++ // the race detector sees if two are here
			most = max(most, inside)
			inside--
			if err := l.Unlock(t.Context(), "example.com"); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	if most != 1 {
		t.Errorf("%d were inside at once", most)
	}
}

func TestTryLock_OfAHeldLock_IsFalse_AndOfAFreeOneTrue(t *testing.T) {
	a, _ := server(t)
	b, _ := server(t)
	if got, err := a.TryLock(t.Context(), "x"); !got || err != nil {
		t.Fatalf("the first TryLock: %t, %v", got, err)
	}
	if got, err := b.TryLock(t.Context(), "x"); got || err != nil {
		t.Errorf("TryLock of a held lock: %t, %v; want false and nil", got, err)
	}
	waiting, cancel := context.WithCancel(t.Context())
	cancel()
	if err := b.Lock(waiting, "x"); !errors.Is(err, context.Canceled) {
		t.Errorf("Lock with a context that has ended: %v", err)
	}
	if err := errors.Join(a.RenewLockLease(t.Context(), "x", time.Minute), a.Unlock(t.Context(), "x")); err != nil {
		t.Error(err)
	}
	if got, err := b.TryLock(t.Context(), "x"); !got || err != nil {
		t.Errorf("TryLock after Unlock: %t, %v", got, err)
	}
	for what, err := range map[string]error{
		"Unlock": a.Unlock(t.Context(), "x"), "RenewLockLease": a.RenewLockLease(t.Context(), "x", time.Minute),
	} {
		if !errors.Is(err, interlock.ErrNotHeld) {
			t.Errorf("%s of a lock that this server does not hold: %v", what, err)
		}
	}
	if got, err := a.TryLock(t.Context(), "x"); got || err != nil {
		t.Errorf("the refused Unlock has freed the other's lock: %t, %v", got, err)
	}
}

// TestUnlock_OfALostLock_LeavesTheNextHoldersAlone: both holders are of one process, and Unlock is given the name only.
func TestUnlock_OfALostLock_LeavesTheNextHoldersAlone(t *testing.T) {
	a, c := server(t)
	b, _ := server(t)
	if err := a.Lock(t.Context(), "x"); err != nil {
		t.Fatal(err)
	}
	for info, err := range c.List(t.Context(), certlock.DefaultPrefix) {
		if err != nil {
			t.Fatal(err)
		}
		if err := c.Break(t.Context(), info.Kind, info.Name, info.Holders[0].Token); err != nil {
			t.Fatal(err)
		}
	}
	if err := a.Lock(t.Context(), "x"); err != nil { // another goroutine of the same server
		t.Fatal(err)
	}
	if err := a.Unlock(t.Context(), "x"); !errors.Is(err, interlock.ErrLost) {
		t.Errorf("Unlock of the lost lock: %v; want the loss", err)
	}
	if got, err := b.TryLock(t.Context(), "x"); got || err != nil {
		t.Errorf("the lost one's Unlock has freed the next one's lock: %t, %v", got, err)
	}
	if err := a.Unlock(t.Context(), "x"); err != nil {
		t.Error(err)
	}
	if got, err := b.TryLock(t.Context(), "x"); !got || err != nil {
		t.Errorf("after both Unlocks: %t, %v", got, err)
	}
}

func TestLock_ByAnOwnerThatHoldsItAlready_IsRefusedAndChangesNothing(t *testing.T) {
	a, c := server(t)
	b, _ := server(t)
	err := c.Do(t.Context(), "certmagic:x", func(ctx context.Context) error {
		if err := a.Lock(ctx, "x"); err != nil {
			return err
		}
		if err := a.Lock(ctx, "x"); !errors.Is(err, interlock.ErrDeadlock) {
			t.Errorf("the second Lock: %v; want ErrDeadlock", err)
		}
		if got, err := b.TryLock(t.Context(), "x"); got || err != nil {
			t.Errorf("the refusal has freed the lock: %t, %v", got, err)
		}
		return a.Unlock(ctx, "x")
	})
	if err != nil {
		t.Error(err)
	}
}

func TestNew_WithoutWhatItNeeds_PanicsAtOnce(t *testing.T) {
	for what, construct := range map[string]func(){
		"needs a client": func() { certlock.New(nil, "") },
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, what) {
					t.Errorf("it said %q, want %q", said, what)
				}
			}()
			construct()
		}()
	}
}
