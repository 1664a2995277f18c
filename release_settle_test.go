package interlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/internal/shell"
)

// placed is a memory engine with a Traits.QueueTimeout: for how long it keeps the place of a request that is not asked
// again.
type placed struct {
	*hooks
	lasts time.Duration
}

func (p *placed) Traits() driver.Traits {
	t := p.hooks.Traits()
	t.QueueTimeout = p.lasts
	return t
}

// queues makes the engine queue a request without ever answering it. Only Waiting still tells who is in the way.
func queues(h *hooks) func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
		own := *r
		go func() { _, _ = h.Driver.Acquire(context.Background(), &own) }() // ends when it is undone
		<-ctx.Done()
		return driver.Grant{}, ctx.Err()
	}
}

// waiting returns how many requests stand in the engine's queue.
func waiting(t *testing.T, c *Client) (n int) {
	t.Helper()
	for info, err := range c.List(t.Context(), "") {
		if err != nil {
			t.Fatal(err)
		}
		n += len(info.Waiters)
	}
	return n
}

func TestUndo_OfAWaitWithAShortLease_GoesOnUntilThePlaceIsLeft(t *testing.T) {
	for name, lasts := range map[string]time.Duration{"places that stay": 0, "places that end": 7 * second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, holder *Client, h *hooks) {
				l := mustLock(t, t.Context(), holder, "a")
				c := mustNew(t, &placed{h, lasts}, &Options{Lease: 300 * time.Millisecond})
				defer c.Close()
				on(h, &h.acquire, queues(h))
				on(h, &h.release, func(ctx context.Context, r *driver.Release) error {
					on(h, &h.release, h.Driver.Release)
					<-ctx.Done() // the server hangs for more than two leases
					return ctx.Err()
				})
				ctx, cancel := context.WithTimeout(t.Context(), 100*time.Millisecond)
				defer cancel()
				if _, err := c.Lock(ctx, "a"); err == nil {
					t.Fatal("locked what another holds")
				}
				synctest.Wait()
				if n := waiting(t, holder); n != 1 {
					t.Fatalf("%d wait in the engine before the undo", n)
				}
				time.Sleep(shell.SettleAttempt + second)
				if n := waiting(t, holder); n != 0 {
					t.Errorf("%d wait in the engine, and nobody waits here", n)
				}
				mustUnlock(t, l)
			})
		})
	}
}

// unanswered locks and unlocks each of the names, with an outcome that stays unknown.
func unanswered(t *testing.T, c *Client, h *hooks, names ...string) {
	t.Helper()
	reset := errors.New("connection reset")
	on(h, &h.acquire, func(context.Context, *driver.Request) (driver.Grant, error) { return driver.Grant{}, reset })
	on(h, &h.release, func(context.Context, *driver.Release) error { return reset })
	for _, name := range names {
		if _, err := c.Lock(t.Context(), name); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Lock: %v", err)
		}
	}
}

// releasesWithin returns how many releases the engine is asked for in that time.
func releasesWithin(h *hooks, during time.Duration) int64 {
	before := h.releases.Load()
	time.Sleep(during)
	synctest.Wait()
	return h.releases.Load() - before
}

func TestUndo_OnAnEngineWhosePlacesEnd_IsRepeatedForTheHorizonAndWhatLastsThen(t *testing.T) {
	for _, lease := range []time.Duration{300 * time.Millisecond, 4 * time.Minute} {
		t.Run(lease.String(), func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
				const lasts = 7 * second
				c := mustNew(t, &placed{h, lasts}, &Options{Lease: lease})
				defer c.Close()
				unanswered(t, c, h, "a", "b", "c")
				end := max(lease, shell.ShortestHorizon) + max(lease, lasts)
				time.Sleep(end - 2*shell.SettleMost - time.Millisecond)
				if n := releasesWithin(h, 2*shell.SettleMost); n < 3 {
					t.Errorf("%d of 3 undos are still asked for just before %v", n, end)
				}
				time.Sleep(shell.SettleMost + second)
				if n := releasesWithin(h, time.Hour); n != 0 {
					t.Errorf("%d are asked for after %v", n, end)
				}
			})
		})
	}
}

func TestUndo_OnAnEngineWhosePlacesStay_IsRepeatedUntilItSucceeds(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		unanswered(t, c, h, "a", "b", "c")
		time.Sleep(longrun.Of(time.Hour, 24*time.Hour))
		if n := releasesWithin(h, 2*shell.SettleMost); n < 3 {
			t.Errorf("%d of 3 undos are still asked for", n)
		}
		on(h, &h.release, h.Driver.Release)
		time.Sleep(shell.SettleMost + second)
		if n := releasesWithin(h, time.Hour); n != 0 {
			t.Errorf("%d are asked for after they have succeeded", n)
		}
	})
}

// The engine may have done what it did not confirm. Then the hold lasts there for as long as Extend asked for.
func TestUnlock_AfterAnExtendWithoutAnAnswer_IsRepeatedUntilThatLeaseIsOverToo(t *testing.T) {
	bubble(t, &Options{Lease: second}, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		on(h, &h.renew, func(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
			h.Driver.Renew(ctx, batch, func(i int, _ error) { done(i, errBug) })
		})
		if err := l.Extend(t.Context(), 4*time.Minute); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Extend: %v", err)
		}
		unanswered(t, c, h)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Unlock(ctx); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Unlock: %v", err)
		}
		time.Sleep(3 * time.Minute)
		on(h, &h.release, h.Driver.Release)
		time.Sleep(shell.SettleMost + shell.SettleAttempt)
		other, err := peer(t, h, nil).TryLock(t.Context(), "a")
		if err != nil {
			t.Fatalf("the lock is still held: %v", err)
		}
		mustUnlock(t, other)
	})
}

func TestUnlock_WithoutAnAnswer_IsRepeatedUntilTheLeaseAndTheHorizonAreOver(t *testing.T) {
	bubble(t, &Options{Lease: second}, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		unanswered(t, c, h)
		ctx, cancel := context.WithCancel(t.Context())
		cancel()
		if err := l.Unlock(ctx); !errors.Is(err, ErrUnavailable) {
			t.Errorf("Unlock: %v", err)
		}
		time.Sleep(shell.ShortestHorizon - second)
		if n := releasesWithin(h, 2*shell.SettleMost); n < 1 {
			t.Error("it is not asked for any more before the end")
		}
		time.Sleep(2 * shell.SettleMost)
		if n := releasesWithin(h, time.Hour); n != 0 {
			t.Errorf("it is asked for %d times after the end", n)
		}
	})
}
