package interlock

import (
	"context"
	"errors"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/internal/trust"
	"github.com/interlock-go/interlock/memlock"
)

// Rules of the protocol whose absence no other test notices. Each rule was taken out of the code once, and its test
// failed.

func TestLocalPass_AfterAFailedRenewal_GoesThroughTheEngine(t *testing.T) {
	bubble(t, &Options{LocalHandoffTime: time.Hour, Renewal: second}, func(t *testing.T, c *Client, h *hooks) {
		first := mustLock(t, t.Context(), c, "a")
		next := lockLater(t.Context(), c, "a")
		on(h, &h.renew, func(_ context.Context, batch []driver.Renewal, done func(int, error)) {
			for i := range batch {
				done(i, errors.New("connection reset"))
			}
		})
		time.Sleep(2 * second)
		mustUnlock(t, first)
		mustUnlock(t, (<-next).lease)
		if h.requeues.Load() != 1 {
			t.Errorf("passed on locally although nobody knows whether the engine is there")
		}
	})
}

func TestNamedOwners_AreNeverPassedLocally(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		first := mustLock(t, WithOwner(t.Context(), "one"), c, "a")
		next := lockLater(t.Context(), c, "a")
		synctest.Wait() // so that they stand in this order
		named := lockLater(WithOwner(t.Context(), "two"), c, "a")
		synctest.Wait()
		if n := h.acquires.Load(); n != 3 {
			t.Errorf("the engine knows %d of 3 requests", n)
		}
		mustUnlock(t, first)
		if n := h.releases.Load(); n != 1 {
			t.Errorf("%d releases", n)
		}
		mustUnlock(t, (<-next).lease)
		mustUnlock(t, (<-named).lease)
	})
}

func TestUndo_SaysForHowLongALateCopyIsToBeRefused(t *testing.T) {
	bubble(t, &Options{Lease: 20 * second}, func(t *testing.T, c *Client, h *hooks) {
		undone := make(chan driver.Release, 10)
		on(h, &h.acquire, func(context.Context, *driver.Request) (driver.Grant, error) {
			return driver.Grant{}, errors.New("connection reset")
		})
		on(h, &h.release, func(_ context.Context, r *driver.Release) error {
			undone <- *r
			return nil
		})
		if _, err := c.Lock(t.Context(), "a"); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		if r := <-undone; !r.Undo || r.Horizon != 20*second {
			t.Errorf("got %+v", r)
		}
	})
}

func TestUnlock_RetriedAfterTheDeadline_SaysLost(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		on(h, &h.renew, noRenewals)
		time.Sleep(29 * second)
		on(h, &h.release, func(ctx context.Context, r *driver.Release) error {
			on(h, &h.release, h.Driver.Release)
			time.Sleep(2 * second)
			return errors.New("connection reset")
		})
		wantLost(t, l.Unlock(t.Context()), LostExpired)
	})
}

func TestRenewals_TellOperatorsWhoHoldsAfterALocalPass(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		first := mustLock(t, t.Context(), c, "a")
		wait := make(chan *Lease, 1)
		go func() {
			l, _ := c.Mutex("a", &LockOptions{Label: "second"}).Lock(t.Context())
			wait <- l
		}()
		synctest.Wait()
		mustUnlock(t, first)
		l := <-wait
		renewed := make(chan driver.Renewal, 1)
		on(h, &h.renew, func(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
			renewed <- batch[0]
			h.Driver.Renew(ctx, batch, done)
		})
		if r := <-renewed; r.Pass != 1 || r.Owner != l.Owner() || r.Label != "second" {
			t.Errorf("got %+v", r)
		}
		mustUnlock(t, l)
	})
}

func TestLease_ForgetsContextsThatHaveEnded(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		for range 100 {
			parent, cancel := context.WithCancel(t.Context())
			l.Context(parent)
			cancel()
		}
		synctest.Wait()
		c.in().Lock()
		if n := len(l.hold().Listeners.Contexts.All); n != 0 {
			t.Errorf("%d contexts are remembered", n)
		}
		c.in().Unlock()
		mustUnlock(t, l)
	})
}

func TestClients_OfOneProcess_AreStrangers(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		if _, err := peer(t, h, nil).TryLock(l.Context(t.Context()), "a"); !errors.Is(err, ErrHeld) {
			t.Errorf("an anonymous owner re-enters through another client: %v", err)
		}
		mustUnlock(t, l)
	})
}

func TestReentry_BesideALostHold_UsesTheLiveOne(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		outer := mustLock(t, t.Context(), c, "a")
		short, err := c.Mutex("a", &LockOptions{MaxHold: second}).Lock(outer.Context(t.Context()))
		if err != nil {
			t.Fatal(err)
		}
		<-short.Lost()
		inner := mustLock(t, outer.Context(t.Context()), c, "a")
		mustUnlock(t, inner)
		mustUnlock(t, outer)
		wantLost(t, short.Unlock(t.Context()), LostExpired)
	})
}

func TestSuspension_IsToldSoonAfterTheMachineHasWokenUp(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := memlock.New(nil)
		defer d.Close()
		var mu sync.Mutex
		var asleep time.Duration
		opts, _ := (*Options)(nil).withDefaults()
		inner, err := shell.NewClient(d, opts.config(), func() time.Duration {
			mu.Lock()
			defer mu.Unlock()
			return asleep
		})
		if err != nil {
			t.Fatal(err)
		}
		c := publicOf(inner)
		defer c.Close()
		var leases []*Lease
		for _, o := range []*LockOptions{nil, {NoRenew: true, Lease: time.Hour}} {
			l, err := c.Mutex("a", o).Lock(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			leases = append(leases, l)
			work := l.Context(t.Context())
			time.Sleep(5*second + 2*trust.LookEvery)
			mu.Lock()
			asleep += 2 * time.Hour
			mu.Unlock()
			start := time.Now()
			<-work.Done()
			wantLost(t, context.Cause(work), LostSuspended)
			if got := time.Since(start); got > core.SuspensionCheck {
				t.Errorf("told %v after the machine woke up", got)
			}
		}
		for _, l := range leases {
			wantLost(t, l.Unlock(t.Context()), LostSuspended)
		}
	})
}
