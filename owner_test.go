package interlock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

func TestReentry_ByContext_SharesTheHoldAndFreesItLast(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		outer := mustLock(t, t.Context(), c, "a")
		inner := mustLock(t, outer.Context(t.Context()), c, "a")
		if inner.Token() != outer.Token() || inner.Owner() != outer.Owner() {
			t.Errorf("re-entry changed token %d to %d", outer.Token(), inner.Token())
		}
		outerStamp, _ := outer.Stamp()
		if innerStamp, ok := inner.Stamp(); !ok || innerStamp != outerStamp {
			t.Errorf("re-entry changed the stamp %v to %v", outerStamp, innerStamp)
		}
		mustUnlock(t, outer) // in any order
		other := peer(t, h, nil)
		if _, err := other.TryLock(t.Context(), "a"); !errors.Is(err, ErrHeld) {
			t.Errorf("free although a hold is left: %v", err)
		}
		if inner.Err() != nil {
			t.Errorf("the other hold ended too: %v", inner.Err())
		}
		mustUnlock(t, inner)
		l, err := other.TryLock(t.Context(), "a")
		if err != nil {
			t.Fatalf("not free after the last hold: %v", err)
		}
		mustUnlock(t, l)
	})
}

func TestReentry_RefreshesTheLease(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		outer := mustLock(t, t.Context(), c, "a")
		before := outer.Deadline()
		time.Sleep(5 * second)
		inner := mustLock(t, outer.Context(t.Context()), c, "a")
		if moved := inner.Deadline().Sub(before); moved != 5*second {
			t.Errorf("the deadline moved by %v, want 5s", moved)
		}
		mustUnlock(t, inner)
		mustUnlock(t, outer)
	})
}

func TestReentry_ByAFreshContext_IsAnotherOwner(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		outer := mustLock(t, t.Context(), c, "a")
		if _, err := c.TryLock(t.Context(), "a"); !errors.Is(err, ErrHeld) {
			t.Errorf("got %v", err)
		}
		mustUnlock(t, outer)
	})
}

func TestReentry_WhileOthersWait_GoesPastThem(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		outer := mustLock(t, t.Context(), c, "a")
		local, remote := lockLater(t.Context(), c, "a"), lockLater(t.Context(), peer(t, h, nil), "a")
		synctest.Wait()
		inner := mustLock(t, outer.Context(t.Context()), c, "a")
		mustUnlock(t, inner)
		mustUnlock(t, outer)
		for range 2 {
			select {
			case got := <-local:
				mustUnlock(t, got.lease)
			case got := <-remote:
				mustUnlock(t, got.lease)
			}
		}
	})
}

func TestReentry_OfGoroutinesThatWaitAsOneOwner_AdmitsThemTogether(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		job := mustLock(t, t.Context(), c, "job")
		ctx := job.Context(t.Context())
		blocker := mustLock(t, t.Context(), c, "a")
		var together sync.WaitGroup
		together.Add(3)
		var all sync.WaitGroup
		for range 3 { // each waits for the others while it holds: one owner, so that is no deadlock
			all.Go(func() {
				l := mustLock(t, ctx, c, "a")
				together.Done()
				together.Wait()
				mustUnlock(t, l)
			})
		}
		synctest.Wait()
		mustUnlock(t, blocker)
		all.Wait()
		mustUnlock(t, job)
	})
}

func TestNamedOwner_ReentersFromAnotherClient(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		ctx := WithOwner(t.Context(), "order-7")
		here := mustLock(t, ctx, c, "a")
		there := mustLock(t, WithOwner(t.Context(), "order-7"), other, "a")
		if here.Token() != there.Token() {
			t.Errorf("tokens differ: %d and %d", here.Token(), there.Token())
		}
		if name, ok := OwnerFrom(there.Context(t.Context())); !ok || name != "order-7" {
			t.Errorf("OwnerFrom: %q, %v", name, ok)
		}
		if _, err := other.TryLock(WithOwner(t.Context(), "order-8"), "a"); !errors.Is(err, ErrHeld) {
			t.Errorf("another name got in: %v", err)
		}
		mustUnlock(t, here)
		if _, err := c.TryLock(t.Context(), "a"); !errors.Is(err, ErrHeld) {
			t.Errorf("free although the other process holds: %v", err)
		}
		mustUnlock(t, there)
		mustUnlock(t, mustLock(t, t.Context(), c, "a"))
	})
}

func TestOwnerFrom_OfAnAnonymousOwner_SaysNo(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		if name, ok := OwnerFrom(l.Context(t.Context())); ok {
			t.Errorf("an anonymous owner travels as %q", name)
		}
		mustUnlock(t, l)
	})
}

func TestReentry_AfterALoss_ReturnsTheLoss(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		work := context.WithoutCancel(l.Context(t.Context()))
		on(h, &h.renew, noRenewals)
		<-l.Lost()
		for range 2 {
			_, err := c.Lock(work, "a")
			wantLost(t, err, LostUnconfirmed)
		}
		wantLost(t, l.Unlock(t.Context()), LostUnconfirmed)
		on(h, &h.renew, h.Driver.Renew)
		mustUnlock(t, mustLock(t, work, c, "a")) // once it has taken note, the owner may lock again
	})
}

func TestReentry_WhenTheEngineSaysItIsGone_LosesTheOuterHoldToo(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		if err := peer(
			t,
			h,
			nil,
		).in().
			Driver.Release(
			t.Context(),
			l.hold().Engine.ReleaseRequest(),
		); err != nil { // behind the client's back
			t.Fatal(err)
		}
		_, err := c.Lock(l.Context(t.Context()), "a")
		if !errors.Is(err, ErrLost) || !errors.Is(l.Err(), ErrLost) {
			t.Errorf("re-entry: %v, outer: %v", err, l.Err())
		}
	})
}

func TestAssertHeld_PanicsUnlessTheOwnerHolds(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		ctx := l.Context(t.Context())
		AssertHeld(ctx, "a")
		panics := func(ctx context.Context, name string) (panicked bool) {
			defer func() { panicked = recover() != nil }()
			AssertHeld(ctx, name)
			return false
		}
		if !panics(ctx, "b") || !panics(t.Context(), "a") {
			t.Error("AssertHeld accepts what is not held")
		}
		mustUnlock(t, l)
		if !panics(ctx, "a") {
			t.Error("AssertHeld accepts a released hold")
		}
	})
}
