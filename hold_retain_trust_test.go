package interlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/grants"
)

// From its first renewal on a retained lock has a short lease, although the hold had a long one. So a client that dies
// keeps others out only briefly.
func TestRetain_ByAClientThatDies_KeepsOthersOutForAShortLease(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		deaf(h, 1000)
		pair(t, c, "a")
		time.Sleep(5 * second)
		on(h, &h.renew, noRenewals)
		on(h, &h.release, func(context.Context, *driver.Release) error { return errors.New("dead") })
		mustUnlock(t, getsInWithin(t, peer(t, h, nil), "a", 2500*time.Millisecond))
		on(h, &h.release, h.Driver.Release)
	})
}

// The trust that is left is that of the retaining renewal. A hold that lasts is renewed for its own lease soon after.
func TestRetain_ATakeOver_HasTheTrustThatIsLeft(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		pair(t, c, "a")
		time.Sleep(5 * second)
		l := mustLock(t, t.Context(), c, "a")
		if left := time.Until(l.Deadline()); left <= 0 || left > grants.RetainLease {
			t.Errorf("%v of trust, want what a short lease leaves", left)
		}
		before := h.renewals.Load()
		if synctest.Wait(); h.renewals.Load() != before {
			t.Error("it is renewed at once, and might be over before it needs that")
		}
		time.Sleep(2 * core.ClaimDelay)
		synctest.Wait()
		if left := time.Until(l.Deadline()); left < 29*second {
			t.Errorf("%v of trust, want the whole lease", left)
		}
		mustUnlock(t, l)
		if n := h.messages(); n != 1 {
			t.Errorf("%d messages beside renewals, want that of the first Lock", n)
		}
	})
}

// The answer to a renewal of the hold comes after its lease has been shortened. It must not lengthen the trust again.
func TestRetain_ARenewalThatShortens_IsNotOutdoneByAnEarlierAnswer(t *testing.T) {
	bubble(t, &Options{Retain: time.Hour}, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		late := make(chan struct{})
		on(h, &h.renew, func(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
			h.Driver.Renew(ctx, batch, func(i int, err error) {
				if !batch[i].Retained {
					<-late
				}
				done(i, err)
			})
		})
		time.Sleep(10*second + 1) // the hold's renewal has been sent
		mustUnlock(t, l)
		time.Sleep(2 * core.RetainGrace) // and then the one that shortens
		close(late)
		synctest.Wait()
		next := mustLock(t, t.Context(), c, "a")
		if left := time.Until(next.Deadline()); left > grants.RetainLease {
			t.Errorf("%v of trust, and the engine has given %v", left, grants.RetainLease)
		}
		mustUnlock(t, next)
	})
}

// Nobody holds a retained lock, so one whose renewals get no answer is released.
func TestRetain_WhenNoRenewalIsAnswered_GoesBack(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.renew, noRenewals)
		pair(t, c, "a")
		time.Sleep(core.RetainGrace + grants.RetainLease/2)
		if synctest.Wait(); h.releases.Load() != 1 {
			t.Errorf("%d releases, want 1", h.releases.Load())
		}
	})
}

// A renewal of a retained lock that travels in one batch with that of a long hold may take as long as that one. Little
// trust is left by then, so a Lock asks the engine, and so does a TryLock: nobody holds the lock.
func TestRetain_WithLittleTrust_AsksTheEngine(t *testing.T) {
	for _, take := range []func(*Mutex, context.Context) (*Lease, error){(*Mutex).Lock, (*Mutex).TryLock} {
		bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
			long := mustLock(t, t.Context(), c, "long")
			defer mustUnlock(t, long)
			time.Sleep(9500 * time.Millisecond)
			on(h, &h.renew, noRenewals)
			pair(t, c, "a")
			time.Sleep(core.RetainGrace + grants.RetainLease*4/5)
			l := must(t)(take(c.Mutex("a", nil), t.Context()))
			if left := time.Until(l.Deadline()); left < 29*second {
				t.Errorf("%v of trust, want a hold of its own", left)
			}
			mustUnlock(t, l)
		})
	}
}

func TestRetain_WithoutTokens_AsksTheEngine(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			r.Tokens = 3
			return h.Driver.Acquire(ctx, r)
		})
		var last uint64
		for range 6 {
			l := pair(t, c, "a")
			if l.Token() <= last {
				t.Errorf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
			time.Sleep(time.Millisecond) // or later blocks would be of one
		}
		if n := h.acquires.Load(); n != 2 {
			t.Errorf("asked %d times for 6 pairs of 3 tokens each, want 2", n)
		}
	})
}
