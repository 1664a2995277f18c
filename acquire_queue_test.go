package interlock

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

func TestLocalHandoffs_CostNoMessageAndGrowTheToken(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		first := mustLock(t, t.Context(), c, "a")
		var waits []<-chan outcome
		for range 10 {
			waits = append(waits, lockLater(t.Context(), c, "a"))
			synctest.Wait() // so that they stand in this order
		}
		last := first
		nonces := map[string]bool{nonceOf(t, first): true}
		for i, wait := range waits {
			mustUnlock(t, last)
			got := <-wait
			if got.err != nil {
				t.Fatalf("waiter %d: %v", i, got.err)
			}
			if got.lease.Token() != last.Token()+1 || nonces[nonceOf(t, got.lease)] {
				t.Errorf("pass %d has token %d after %d, nonce %q", i, got.lease.Token(), last.Token(),
					nonceOf(t, got.lease))
			}
			nonces[nonceOf(t, got.lease)] = true
			last = got.lease
		}
		if n := h.acquires.Load() + h.requeues.Load() + h.releases.Load(); n != 1 {
			t.Errorf("%d messages for 11 owners, want 1", n)
		}
		mustUnlock(t, last)
	})
}

func nonceOf(t *testing.T, l *Lease) string {
	t.Helper()
	stamp, ok := l.Stamp()
	if !ok {
		t.Fatalf("no stamp: %v", l.Err())
	}
	return stamp.Nonce
}

func TestLocalHandoffs_EndAfterTheirNumber_InFavourOfOtherProcesses(t *testing.T) {
	bubble(t, &Options{LocalHandoffs: 3}, func(t *testing.T, c *Client, h *hooks) {
		first := mustLock(t, t.Context(), c, "a")
		remote := lockLater(t.Context(), peer(t, h, nil), "a")
		synctest.Wait()
		order := make(chan string, 7)
		for i := range 6 {
			go func() {
				l := mustLock(t, t.Context(), c, "a")
				order <- fmt.Sprint("local ", i)
				mustUnlock(t, l)
			}()
			synctest.Wait()
		}
		go func() {
			got := <-remote
			order <- "remote"
			mustUnlock(t, got.lease)
		}()
		mustUnlock(t, first)
		for i := range 7 {
			want := []string{"local 0", "local 1", "local 2", "remote", "local 3", "local 4", "local 5"}[i]
			if got := <-order; got != want {
				t.Errorf("number %d is %q, want %q", i, got, want)
			}
		}
		synctest.Wait() // the last one unlocks after its word, and the end of the bubble closes the client
	})
}

func TestLocalHandoffs_ThatWereUsedUp_AreAskedForInFullTheNextTime(t *testing.T) {
	bubble(t, &Options{LocalHandoffs: 100, LocalHandoffTime: time.Hour}, func(t *testing.T, c *Client, h *hooks) {
		var asked []int
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			asked = append(asked, r.Tokens)
			return h.Driver.Acquire(ctx, r)
		})
		on(h, &h.requeue, func(ctx context.Context, give *driver.Release, r *driver.Request) (driver.Grant, error) {
			asked = append(asked, r.Tokens)
			return h.Driver.Requeue(ctx, give, r)
		})
		var all sync.WaitGroup
		l := mustLock(t, t.Context(), c, "a")
		for range 70 {
			all.Go(func() { mustUnlock(t, mustLock(t, t.Context(), c, "a")) })
		}
		synctest.Wait()
		mustUnlock(t, l)
		all.Wait()
		// Virtual time stands still, so the tokens are ahead of the clock, and later blocks have one token each.
		if want := []int{64, 101}; len(asked) < 2 || !slices.Equal(asked[:2], want) {
			t.Errorf("asked for blocks of %v tokens, want %v first", asked, want)
		}
	})
}

func TestLocalHandoffs_EndAfterTheirTime(t *testing.T) {
	bubble(t, &Options{LocalHandoffTime: second}, func(t *testing.T, c *Client, h *hooks) {
		first := mustLock(t, t.Context(), c, "a")
		remote := lockLater(t.Context(), peer(t, h, nil), "a")
		synctest.Wait()
		local := lockLater(t.Context(), c, "a")
		synctest.Wait()
		time.Sleep(2 * second)
		mustUnlock(t, first)
		mustUnlock(t, (<-remote).lease)
		mustUnlock(t, (<-local).lease)
	})
}

func TestLocalHandoffs_Never_GoThroughTheEngine(t *testing.T) {
	bubble(t, &Options{LocalHandoffs: -1}, func(t *testing.T, c *Client, h *hooks) {
		first := mustLock(t, t.Context(), c, "a")
		second := lockLater(t.Context(), c, "a")
		synctest.Wait()
		mustUnlock(t, first)
		got := <-second
		if n := h.requeues.Load(); n != 1 {
			t.Errorf("%d messages that release and enqueue, want 1", n)
		}
		mustUnlock(t, got.lease)
	})
}

func TestLocalPass_WithoutEnoughTrust_GoesThroughTheEngine(t *testing.T) {
	bubble(t, &Options{LocalHandoffTime: time.Hour}, func(t *testing.T, c *Client, h *hooks) {
		first := mustLock(t, t.Context(), c, "a")
		next := lockLater(t.Context(), c, "a")
		on(h, &h.renew, noRenewals)
		time.Sleep(15 * second)
		mustUnlock(t, first)
		got := <-next
		if left := time.Until(got.lease.Deadline()); left < 29*second {
			t.Errorf("the receiver was given %v", left)
		}
		mustUnlock(t, got.lease)
	})
}

// shortGrants makes every grant as short as one that the engine has pushed and the client has yet to claim.
func shortGrants(h *hooks) {
	on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
		g, err := h.Driver.Acquire(ctx, r)
		g.Lease = 2 * second
		return g, err
	})
}

func TestLocalPass_OfAShortGrant_WaitsForItsRenewal(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		shortGrants(h)
		answer := make(chan struct{})
		on(h, &h.renew, func(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
			<-answer
			h.Driver.Renew(ctx, batch, done)
		})
		first := mustLock(t, t.Context(), c, "a")
		next := lockLater(t.Context(), c, "a")
		synctest.Wait()
		mustUnlock(t, first)
		synctest.Wait()
		select {
		case <-next:
			t.Fatal("passed on before it was renewed")
		default:
		}
		close(answer)
		got := <-next
		if got.err != nil || got.lease.Token() != first.Token()+1 {
			t.Fatalf("token %d, %v; want the next of the block after %d", got.lease.Token(), got.err, first.Token())
		}
		if left := time.Until(got.lease.Deadline()); left < 29*second {
			t.Errorf("the receiver was given %v", left)
		}
		mustUnlock(t, got.lease)
	})
}

func TestLocalPass_OfAShortGrantWhoseWaiterHasGone_GivesItBack(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		shortGrants(h)
		answer := make(chan struct{})
		on(h, &h.renew, func(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
			<-answer
			h.Driver.Renew(ctx, batch, done)
		})
		first := mustLock(t, t.Context(), c, "a")
		ctx, cancel := context.WithCancel(t.Context())
		next := lockLater(ctx, c, "a")
		synctest.Wait()
		mustUnlock(t, first)
		cancel()
		if got := <-next; got.err == nil {
			t.Fatal("granted without trust")
		}
		close(answer)
		synctest.Wait()
		mustUnlock(t, mustLock(t, t.Context(), peer(t, h, nil), "a"))
	})
}

func TestAWaiterThatGivesUp_LeavesTheOthersTheirPlace(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		first := mustLock(t, t.Context(), other, "a")
		ctx, cancel := context.WithCancel(t.Context())
		head := lockLater(ctx, c, "a")
		synctest.Wait()
		behind := lockLater(t.Context(), c, "a")
		synctest.Wait()
		late := lockLater(t.Context(), peer(t, h, nil), "a")
		synctest.Wait()
		cancel()
		if got := <-head; !errors.Is(got.err, context.Canceled) || !errors.Is(got.err, ErrHeld) {
			t.Errorf("the head: %v", got.err)
		}
		mustUnlock(t, first)
		got := <-behind // before late, who came later
		mustUnlock(t, got.lease)
		mustUnlock(t, (<-late).lease)
		if n := h.acquires.Load(); n != 1 {
			t.Errorf("asked %d times, want the head's request to serve", n)
		}
	})
}

func TestLoss_SendsTheWaitersToTheEngine(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		first := mustLock(t, t.Context(), c, "a")
		next := lockLater(t.Context(), c, "a")
		synctest.Wait()
		on(h, &h.renew, noRenewals)
		got := <-next // first is never unlocked
		if got.err != nil {
			t.Fatal(got.err)
		}
		wantLost(t, first.Err(), LostUnconfirmed)
		if got.lease.Token() <= first.Token() {
			t.Errorf("token %d after %d", got.lease.Token(), first.Token())
		}
		wantLost(t, first.Unlock(t.Context()), LostUnconfirmed)
		if err := got.lease.Err(); err != nil {
			t.Errorf("the loser's Unlock harmed its successor: %v", err)
		}
		mustUnlock(t, got.lease)
	})
}

func TestMutexesWithOtherLeases_ExcludeEachOther(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		short := c.Mutex("a", &LockOptions{Lease: 5 * second})
		first := mustLock(t, t.Context(), c, "a")
		if _, err := short.TryLock(t.Context()); !errors.Is(err, ErrHeld) {
			t.Errorf("got %v", err)
		}
		inner, err := short.Lock(first.Context(t.Context())) // but the owner re-enters
		if err != nil {
			t.Fatal(err)
		}
		mustUnlock(t, first)
		mustUnlock(t, inner)
	})
}

func TestAGrantShorterThanAsked_IsRenewedSoon(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			g, err := h.Driver.Acquire(ctx, r)
			g.Lease = 2 * second // as a pushed claim
			return g, err
		})
		l := mustLock(t, t.Context(), c, "a")
		time.Sleep(core.ClaimDelay)
		synctest.Wait()
		if left := time.Until(l.Deadline()); left < 29*second {
			t.Errorf("%v of trust, want the full lease", left)
		}
		mustUnlock(t, l)
	})
}

func TestNothingStays_InAnIdleClient(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		for i := range 100 {
			mustUnlock(t, mustLock(t, t.Context(), c, fmt.Sprint(i)))
			l := mustLock(t, WithOwner(t.Context(), "me"), c, fmt.Sprint(i))
			mustUnlock(t, l)
		}
		c.in().Lock()
		defer c.in().Unlock()
		if len(c.in().Lines) > 0 || len(c.in().EngineHolds) > 0 || len(c.in().LinesOfOne) > 0 ||
			len(c.in().Scheduler.Due) > 0 {
			t.Errorf("left: %d queues, %d grants, %d waits, %d scheduled",
				len(c.in().Lines), len(c.in().EngineHolds), len(c.in().LinesOfOne), len(c.in().Scheduler.Due))
		}
	})
}
