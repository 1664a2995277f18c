package interlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestDowngrade_OfAWrite_LetsReadersInAndNoWriter(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		l := must(t)(m.Lock(ctx))
		token, nonce, work := l.Token(), nonceOf(t, l), l.Context(ctx)
		if err := l.Downgrade(ctx); err != nil {
			t.Fatal(err)
		}
		read := must(t)(other.TryRLock(ctx))
		_, err := other.TryLock(ctx)
		wantErr(t, "a writer beside the read", err, ErrHeld)
		if !isShared(t, l) || l.Token() != token || nonceOf(t, l) != nonce || work.Err() != nil {
			t.Errorf("after the downgrade: shared %v, token %d, want %d; %v", isShared(t, l), l.Token(), token,
				work.Err())
		}
		wantErr(t, "a second Downgrade", l.Downgrade(ctx), ErrConflict)
		wantErr(t, "an Upgrade", l.Upgrade(ctx), ErrDeadlock)
		time.Sleep(2 * defaultLease)
		mustUnlock(t, read)
		mustUnlock(t, l)
		mustUnlock(t, must(t)(other.TryLock(ctx)))
	})
}

func TestDowngrade_WithoutAnAnswer_ChangesNothing(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		l := must(t)(m.Lock(ctx))
		on(h, &h.convert, func(ctx context.Context, _ string, _ *driver.Request) (driver.Grant, error) {
			<-ctx.Done()
			return driver.Grant{}, ctx.Err()
		})
		bounded, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		wantUnanswered(t, "downgrade", l.Downgrade(bounded))
		if l.Err() != nil || isShared(t, l) {
			t.Errorf("the write: %v", l.Err())
		}
		on(h, &h.convert, h.Driver.Convert)
		if err := l.Downgrade(ctx); err != nil {
			t.Fatal(err)
		}
		mustUnlock(t, must(t)(other.TryRLock(ctx)))
		mustUnlock(t, l)
	})
}

func TestDowngrade_OfAnUpgradedHold_OnAHungEngine_SaysWhatWasCalled(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		up := must(t)(c.RWMutex("x", nil).UpgradeableRLock(t.Context()))
		if err := up.Upgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		on(h, &h.release, func(ctx context.Context, _ *driver.Release) error { <-ctx.Done(); return ctx.Err() })
		defer on(h, &h.release, h.Driver.Release)
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		wantUnanswered(t, "downgrade", up.Downgrade(ctx))
	})
}

func TestDowngrade_OfAWriteThatHadBeenLost_SaysSo(t *testing.T) {
	for name, upgraded := range map[string]bool{"plain": false, "upgraded": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
				l := must(t)(m.UpgradeableRLock(ctx))
				if upgraded {
					if err := l.Upgrade(ctx); err != nil {
						t.Fatal(err)
					}
				} else {
					mustUnlock(t, l)
					l = must(t)(m.Lock(ctx))
				}
				_ = h.Driver.Release(ctx, &driver.Release{Key: l.hold().Lock.Key(), ID: l.hold().Engine.ID})
				wantErr(t, "Downgrade", l.Downgrade(ctx), ErrLost)
				wantErr(t, "Err", l.Err(), ErrLost)
				wantErr(t, "Unlock", l.Unlock(ctx), ErrLost)
				synctest.Wait()
				mustUnlock(t, must(t)(other.TryLock(ctx)))
			})
		})
	}
}

func TestUpgradeAndDowngrade_OfOtherLocks_AreUnsupported(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		for _, l := range []*Lease{
			mustLock(t, t.Context(), c, "x"),
			must(t)(c.Semaphore("x", 2, nil).Acquire(t.Context(), 1)),
		} {
			wantErr(t, "Upgrade", l.Upgrade(t.Context()), ErrUnsupported)
			wantErr(t, "Downgrade", l.Downgrade(t.Context()), ErrUnsupported)
			mustUnlock(t, l)
		}
	})
}

// The write may run out before its release is answered, because it is renewed no more. The engine finds no such hold
// then, and an engine that guesses calls it taken: the read of this very hold is inside.
func TestDowngrade_WhoseReleaseIsAnsweredLate_KeepsTheRead(t *testing.T) {
	for _, reason := range []LostReason{LostExpired, LostTaken} {
		t.Run(string(reason), func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				l := must(t)(c.RWMutex("x", nil).Lock(t.Context()))
				on(h, &h.release, func(ctx context.Context, r *driver.Release) error {
					on(h, &h.release, h.Driver.Release)
					time.Sleep(2 * defaultLease) // virtual
					_ = h.Driver.Release(ctx, r)
					return &LostError{Kind: r.Kind, Name: r.Name, Reason: reason}
				})
				if err := l.Downgrade(t.Context()); err != nil || l.Err() != nil || !isShared(t, l) {
					t.Errorf("Downgrade: %v; the hold: %v", err, l.Err())
				}
				mustUnlock(t, l)
			})
		})
	}
}
