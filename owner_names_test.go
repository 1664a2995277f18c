package interlock

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

// wouldPanic reports whether AssertHeld panics.
func wouldPanic(ctx context.Context, name string) (panicked bool) {
	defer func() { panicked = recover() != nil }()
	AssertHeld(ctx, name)
	return false
}

func TestWithOwner_CalledTwiceWithOneName_IsOneOwner(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		as := func() context.Context { return WithOwner(t.Context(), strings.Clone("order-7")) }
		l := mustLock(t, as(), other, "a")
		if wouldPanic(as(), "a") {
			t.Error("AssertHeld does not know what the same name holds")
		}
		if !wouldPanic(WithOwner(t.Context(), "order-8"), "a") {
			t.Error("AssertHeld takes another name for it")
		}
		mustUnlock(t, mustLock(t, as(), c, "a"))
		mustUnlock(t, l)
		if !wouldPanic(as(), "a") {
			t.Error("AssertHeld accepts a released hold")
		}
	})
}

func TestWithOwner_CalledTwice_IsToldOfTheLoss(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, WithOwner(t.Context(), "order-7"), c, "a")
		on(h, &h.renew, noRenewals)
		<-l.Lost()
		_, err := c.Lock(WithOwner(t.Context(), "order-7"), "a")
		wantLost(t, err, LostUnconfirmed)
		wantLost(t, l.Unlock(t.Context()), LostUnconfirmed)
		mustUnlock(t, mustLock(t, WithOwner(t.Context(), "order-7"), c, "a"))
	})
}

// anew is holdThen with a WithOwner of its own for each lock, as in handlers that share only the owner's name.
func anew(t *testing.T, c *Client, name, first, second string, at time.Duration) <-chan error {
	t.Helper()
	l := mustLock(t, WithOwner(t.Context(), name), c, first)
	out := make(chan error, 1)
	go func() {
		time.Sleep(at) // virtual
		inner, err := c.Lock(WithOwner(t.Context(), name), second)
		if err == nil {
			err = inner.Unlock(t.Context())
		}
		out <- errors.Join(err, l.Unlock(t.Context()))
	}()
	return out
}

// oneIsTold fails unless exactly one of all gets ErrDeadlock and the others get on.
func oneIsTold(t *testing.T, all ...<-chan error) {
	t.Helper()
	told := 0
	for _, done := range all {
		switch err := <-done; {
		case errors.Is(err, ErrDeadlock):
			told++
		case err != nil:
			t.Errorf("got %v", err)
		}
	}
	if told != 1 {
		t.Errorf("%d were told of a deadlock, want 1", told)
	}
}

func TestDeadlock_OfOwnersThatAreNamedAnewForEachLock_IsTold(t *testing.T) {
	for clients := 1; clients <= 3; clients++ {
		t.Run(fmt.Sprint(clients, " clients"), func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				all := []*Client{c, c, c}
				for i := 1; i < clients; i++ {
					all[i] = peer(t, h, nil)
				}
				start := time.Now()
				oneIsTold(t, anew(t, all[0], "A", "a", "b", second), anew(t, all[1], "B", "b", "c", 2*second),
					anew(t, all[2], "C", "c", "a", 3*second))
				if took := time.Since(start); took > 3*second+2*shell.RemoteFirst+4*shell.SearchAfter {
					t.Errorf("found after %v", took)
				}
			})
		})
	}
}

// An owner that holds by one client and waits by another is one owner for the search.
func TestDeadlock_OfOwnersThatHoldByOneClientAndWaitByAnother_IsTold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		a, b := mustLock(t, WithOwner(t.Context(), "A"), c, "a"), mustLock(t, WithOwner(t.Context(), "B"), other, "b")
		wantsB := lockLater(WithOwner(t.Context(), "A"), other, "b")
		synctest.Wait()
		wantsA := lockLater(WithOwner(t.Context(), "B"), c, "a")
		if o := <-wantsA; !errors.Is(o.err, ErrDeadlock) {
			t.Fatalf("got %v", o.err)
		}
		mustUnlock(t, b)
		mustUnlock(t, (<-wantsB).lease)
		mustUnlock(t, a)
	})
}

func TestWithOwner_KeepsNothingOfNamesThatNobodyUses(t *testing.T) {
	known := func() int {
		core.Names.Mu.Lock()
		defer core.Names.Mu.Unlock()
		return len(core.Names.Owners)
	}
	collect := func(most int) bool {
		for range 200 { // clean-ups run some time after a collection
			runtime.GC()
			if known() <= most {
				return true
			}
			runtime.Gosched()
		}
		return false
	}
	collect(0)
	before := known()
	const many = 10_000
	used := WithOwner(t.Context(), "used")
	for i := range many {
		if o := shell.OwnerFrom(WithOwner(t.Context(), fmt.Sprint("request ", i))); !o.Named {
			t.Fatal("no owner")
		}
	}
	if !collect(before + 1) {
		t.Errorf("%d of %d names are kept", known()-before, many)
	}
	if shell.OwnerFrom(used) != shell.OwnerFrom(WithOwner(t.Context(), "used")) {
		t.Error("a name that is in use was forgotten")
	}
}

func TestWithOwner_IsOneOwner_WhileNamesComeAndGo(t *testing.T) {
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			for i := range 3000 {
				one, two := WithOwner(t.Context(), fmt.Sprint(i%7)), WithOwner(t.Context(), fmt.Sprint(i%7))
				if shell.OwnerFrom(one) != shell.OwnerFrom(two) {
					t.Error("one name, two owners")
				}
				if i%1000 == 0 {
					runtime.GC()
				}
				runtime.KeepAlive(one)
			}
		})
	}
	all.Wait()
}
