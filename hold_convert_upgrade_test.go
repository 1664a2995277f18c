package interlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestUpgrade_WaitsForTheReadersBeforeEverybodyElse(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		up := must(t)(m.UpgradeableRLock(ctx))
		token, stamp := up.Token(), nonceOf(t, up)
		beside := must(t)(m.UpgradeableRLock(up.Context(ctx)))
		read := must(t)(other.RLock(ctx))
		_, err := other.TryUpgradeableRLock(ctx)
		wantErr(t, "a second upgradeable read", err, ErrHeld)
		writer := later(func() (*Lease, error) { return other.Lock(ctx) })
		synctest.Wait()
		upgraded := upgradeLater(ctx, up)
		stillWaits(t, upgraded, "beside another reader")
		wantErr(t, "a second Upgrade", up.Upgrade(ctx), ErrConflict)
		wantErr(t, "a Downgrade meanwhile", up.Downgrade(ctx), ErrConflict)
		mustUnlock(t, read)
		if err := <-upgraded; err != nil {
			t.Fatal(err)
		}
		stillWaits(t, writer, "beside an upgraded write")
		if up.Token() <= token || nonceOf(t, up) == stamp || isShared(t, up) {
			t.Errorf("after the upgrade the token is %d after %d, shared %v", up.Token(), token, isShared(t, up))
		}
		if beside.Token() != up.Token() || nonceOf(t, beside) != nonceOf(t, up) || !isShared(t, beside) {
			t.Errorf("the owner's other hold has token %d, want %d", beside.Token(), up.Token())
		}
		wantErr(t, "an Upgrade of a write", up.Upgrade(ctx), ErrConflict)
		time.Sleep(2 * defaultLease) // renewed, both of it
		if err := up.Downgrade(ctx); err != nil {
			t.Fatal(err)
		}
		if !isShared(t, up) || up.Token() != beside.Token() {
			t.Errorf("after the downgrade: shared %v, token %d, want %d", isShared(t, up), up.Token(), beside.Token())
		}
		mustUnlock(t, beside)
		stillWaits(t, writer, "beside the upgradeable read")
		if err := up.Upgrade(ctx); err != nil {
			t.Fatalf("a second upgrade: %v", err)
		}
		mustUnlock(t, up)
		wantErr(t, "Upgrade of what was unlocked", up.Upgrade(ctx), ErrReleased)
		mustUnlock(t, must(t)((<-writer).lease, nil))
	})
}

func TestUpgrade_WhoseContextEnds_LeavesTheUpgradeableRead(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		up, read := must(t)(m.UpgradeableRLock(ctx)), must(t)(other.RLock(ctx))
		bounded, cancel := context.WithTimeout(ctx, time.Second)
		defer cancel()
		upgraded := upgradeLater(bounded, up)
		synctest.Wait()
		late := later(func() (*Lease, error) { return other.RLock(ctx) })
		stillWaits(t, late, "behind an upgrade")
		err := <-upgraded
		var held *HeldError
		if !errors.As(err, &held) || !errors.Is(err, context.DeadlineExceeded) || held.Token != read.Token() {
			t.Errorf("the upgrade says %v, want the reader and the deadline", err)
		}
		mustUnlock(t, must(t)((<-late).lease, nil))
		if up.Err() != nil || !isShared(t, up) {
			t.Errorf("the upgradeable read: %v", up.Err())
		}
		_, err = other.TryUpgradeableRLock(ctx)
		wantErr(t, "another upgradeable read", err, ErrHeld)
		mustUnlock(t, read)
		if err := up.Upgrade(ctx); err != nil {
			t.Fatalf("a second Upgrade: %v", err)
		}
		mustUnlock(t, up)
		mustUnlock(t, must(t)(other.TryLock(ctx)))
	})
}

func TestUpgrade_WhoseReplyIsLost_IsUndoneAndCanBeMadeAgain(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		up := must(t)(m.UpgradeableRLock(ctx))
		on(h, &h.convert, func(ctx context.Context, beside string, r *driver.Request) (driver.Grant, error) {
			on(h, &h.convert, h.Driver.Convert)
			if _, err := h.Driver.Convert(ctx, beside, r); err != nil {
				t.Errorf("the engine: %v", err)
			}
			return driver.Grant{}, &UnavailableError{Op: "convert", Name: r.Name, Err: errors.New("the reply was lost")}
		})
		wantUnanswered(t, "upgrade", up.Upgrade(ctx))
		if up.Err() != nil || !isShared(t, up) {
			t.Errorf("the upgradeable read: %v", up.Err())
		}
		synctest.Wait()
		mustUnlock(t, must(t)(other.TryRLock(ctx))) // the write was undone
		if err := up.Upgrade(ctx); err != nil {
			t.Fatalf("a second Upgrade: %v", err)
		}
		mustUnlock(t, up)
		mustUnlock(t, must(t)(other.TryLock(ctx)))
	})
}

func TestUpgrade_OfAHoldThatIsLostMeanwhile_SaysSo(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, c *Client, h *hooks, l *Lease) LostReason{
		"broken": func(t *testing.T, c *Client, _ *hooks, l *Lease) LostReason {
			if err := c.Break(t.Context(), KindRWMutex, "x", l.Token()); err != nil {
				t.Error(err)
			}
			return LostBroken
		},
		"unconfirmed": func(t *testing.T, _ *Client, h *hooks, _ *Lease) LostReason {
			on(h, &h.renew, noRenewals)
			time.Sleep(defaultLease)
			on(h, &h.renew, h.Driver.Renew)
			return LostUnconfirmed
		},
		"told by the engine alone": func(t *testing.T, _ *Client, h *hooks, l *Lease) LostReason {
			taken := &driver.Release{Key: l.hold().Lock.Key(), ID: l.hold().Engine.ID}
			if err := h.Driver.Release(t.Context(), taken); err != nil {
				t.Error(err)
			}
			return LostExpired
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
				up, read := must(t)(m.UpgradeableRLock(ctx)), must(t)(other.RLock(ctx))
				upgraded := upgradeLater(ctx, up)
				synctest.Wait()
				reason := lose(t, c, h, up)
				wantLost(t, <-upgraded, reason)
				wantLost(t, up.Err(), reason)
				wantLost(t, up.Unlock(ctx), reason)
				synctest.Wait()
				mustUnlock(t, read)
				mustUnlock(t, must(t)(other.TryLock(ctx)))
			})
		})
	}
}

func TestUpgrade_OfAHoldThatIsUnlockedMeanwhile_SaysReleased(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		up, read := must(t)(m.UpgradeableRLock(ctx)), must(t)(other.RLock(ctx))
		upgraded := upgradeLater(ctx, up)
		synctest.Wait()
		mustUnlock(t, up)
		wantErr(t, "Upgrade", <-upgraded, ErrReleased)
		mustUnlock(t, read)
		synctest.Wait()
		mustUnlock(t, must(t)(other.TryLock(ctx)))
	})
}
