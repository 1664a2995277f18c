package interlock

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/internal/trust"
	"github.com/interlock-go/interlock/memlock"
)

func TestLost_OnAHungEngine_FiresAtTheDeadline(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		start := time.Now()
		l := mustLock(t, t.Context(), c, "a")
		on(h, &h.renew, noRenewals)
		want := start.Add(30*second - 300*time.Millisecond - 2*time.Millisecond)
		if !l.Deadline().Equal(want) {
			t.Errorf("deadline %v after the start, want %v", l.Deadline().Sub(start), want.Sub(start))
		}
		ctx := l.Context(t.Context())
		<-l.Lost()
		if !time.Now().Equal(want) {
			t.Errorf("lost %v after the start, want %v", time.Since(start), want.Sub(start))
		}
		wantLost(t, l.Err(), LostUnconfirmed)
		<-ctx.Done() // at this instant too, but Lost is closed first
		wantLost(t, context.Cause(ctx), LostUnconfirmed)
		if !l.Deadline().Equal(want) {
			t.Error("the deadline of a lost hold moves on")
		}
		wantLost(t, l.Unlock(t.Context()), LostUnconfirmed)
	})
}

func TestTrust_CountsFromBeforeTheRequest(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			g, err := h.Driver.Acquire(ctx, r)
			time.Sleep(7 * second) // the reply is slow
			return g, err
		})
		start := time.Now()
		l := mustLock(t, t.Context(), c, "a")
		if got := l.Deadline().Sub(start); got >= 30*second {
			t.Errorf("trusted until %v after the request was sent", got)
		}
		on(h, &h.acquire, h.Driver.Acquire)
		on(h, &h.renew, func(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
			h.Driver.Renew(ctx, batch, func(i int, err error) {
				time.Sleep(4 * second)
				done(i, err)
			})
		})
		time.Sleep(20 * second)
		if got := time.Until(l.Deadline()); got > 26*second {
			t.Errorf("a renewal answered after 4s left %v of trust", got)
		}
		mustUnlock(t, l)
	})
}

func TestRenewal_GoesOnUntilTheWindowEnds_NotUntilACount(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		broken := errors.New("connection refused")
		var after []time.Duration
		start := time.Now()
		on(h, &h.renew, func(_ context.Context, batch []driver.Renewal, done func(int, error)) {
			after = append(after, time.Since(start))
			if time.Since(start) > 29*second {
				h.Driver.Renew(t.Context(), batch, done)
				return
			}
			for i := range batch {
				done(i, broken)
			}
		})
		l := mustLock(t, t.Context(), c, "a")
		time.Sleep(35 * second)
		if err := l.Err(); err != nil {
			t.Fatalf("gave up after tries at %v: %v", after, err)
		}
		if len(after) < 8 || len(after) > 60 {
			t.Errorf("%d tries, at %v", len(after), after)
		}
		mustUnlock(t, l)
	})
}

func TestRenewal_AnsweredAfterTheDeadline_DoesNotReviveTheHold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.renew, func(_ context.Context, batch []driver.Renewal, done func(int, error)) {
			time.Sleep(25 * second) // sent at 10s, so the answer comes after the end of the window at 29.7s
			for i := range batch {
				done(i, nil)
			}
		})
		l := mustLock(t, t.Context(), c, "a")
		<-l.Lost()
		time.Sleep(60 * second)
		wantLost(t, l.Err(), LostUnconfirmed)
	})
}

func TestRenewal_WhenTheEngineSaysLost_EndsTheHoldAtOnce(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		start := time.Now()
		l := mustLock(t, t.Context(), c, "a")
		on(h, &h.renew, func(_ context.Context, batch []driver.Renewal, done func(int, error)) {
			for i := range batch {
				done(i, &LostError{Reason: LostTaken})
			}
		})
		<-l.Lost()
		wantLost(t, l.Err(), LostTaken)
		if time.Since(start) != 10*second {
			t.Errorf("told after %v", time.Since(start))
		}
	})
}

func TestLost_ByBreak_IsToldAtOnceAndCarriesTheReason(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		l := mustLock(t, t.Context(), c, "a")
		next := lockLater(t.Context(), other, "a")
		synctest.Wait()
		if err := other.Break(t.Context(), KindMutex, "a", l.Token()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		wantLost(t, l.Err(), LostBroken)
		mustUnlock(t, (<-next).lease)
	})
}

func TestSuspension_LongerThanTheWindow_IsALoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := memlock.New(nil)
		defer d.Close()
		var suspended atomic.Int64
		opts, _ := (*Options)(nil).withDefaults()
		inner, err := shell.NewClient(d, opts.config(), func() time.Duration { return time.Duration(suspended.Load()) })
		if err != nil {
			t.Fatal(err)
		}
		c := publicOf(inner)
		defer c.Close()
		l := mustLock(t, t.Context(), c, "a")
		time.Sleep(5*second + 2*trust.LookEvery)
		suspended.Store(int64(10 * second))
		if err := l.Err(); err != nil {
			t.Fatalf("lost by a suspension that left 14 s: %v", err)
		}
		if left := time.Until(l.Deadline()); left > 15*second {
			t.Errorf("after a suspension of 10 s still %v of trust", left)
		}
		time.Sleep(2 * trust.LookEvery)
		suspended.Store(int64(40 * second))
		if _, ok := l.Stamp(); ok {
			t.Error("a stamp after a suspension longer than the lease")
		}
		wantLost(t, l.Err(), LostSuspended)
		if since := time.Since(l.Deadline()); since < 10*second || since > 20*second {
			t.Errorf("trusted until %v ago, and noticed after a suspension that outlasted it by some 15 s", since)
		}
		l = mustLock(t, t.Context(), c, "b") // suspensions of the past do not count against new holds
		if err := l.Err(); err != nil {
			t.Error(err)
		}
		mustUnlock(t, l)
	})
}

func TestNoRenew_EndsAfterItsLeaseUnlessExtended(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		m := c.Mutex("a", &LockOptions{Lease: 10 * second, NoRenew: true})
		start := time.Now()
		l, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(8 * second)
		if err := l.Extend(t.Context(), 10*second); err != nil {
			t.Fatal(err)
		}
		if got := l.Deadline().Sub(start); got < 18*second {
			t.Errorf("extended by 10s at 8s, but the deadline is at %v", got)
		}
		<-l.Lost()
		wantLost(t, l.Err(), LostExpired)
		if got := time.Since(start); got < 18*second || got > 19*second {
			t.Errorf("ended after %v", got)
		}
		if n := h.renewals.Load(); n != 1 {
			t.Errorf("%d renewals, want the one of Extend", n)
		}
	})
}

func TestMaxHold_EndsARenewedHold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		m := c.Mutex("a", &LockOptions{MaxHold: 65 * second})
		start := time.Now()
		l, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Extend(t.Context(), 66*second); err == nil {
			t.Error("extended beyond the MaxHold")
		}
		<-l.Lost()
		wantLost(t, l.Err(), LostExpired)
		if time.Since(start) != 65*second {
			t.Errorf("ended after %v", time.Since(start))
		}
		synctest.Wait()
		mustUnlock(t, mustLock(t, t.Context(), peer(t, h, nil), "a")) // and was given back
		if time.Since(start) != 65*second {
			t.Errorf("free after %v only", time.Since(start))
		}
	})
}

func TestExtend_ThatFails_NamesItself(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		for what, renew := range map[string]func(context.Context, []driver.Renewal, func(int, error)){
			"unreachable": refused, "denied": denied, "hung": noRenewals,
		} {
			on(h, &h.renew, renew)
			ctx, cancel := context.WithTimeout(t.Context(), second)
			err := l.Extend(ctx, time.Minute)
			cancel()
			var unavailable *UnavailableError
			var refusal *RefusedError
			if errors.As(err, &refusal) != (what == "denied") || errors.As(err, &unavailable) == (what == "denied") {
				t.Errorf("%s: %v", what, err)
			}
			if !strings.HasPrefix(err.Error(), `extend "a": `) || strings.Contains(err.Error(), "renew") {
				t.Errorf("%s: %v", what, err)
			}
		}
		on(h, &h.renew, h.Driver.Renew)
		mustUnlock(t, l)
	})
}

func TestExtend_OfARenewedHold_LastsAtLeastThatLong(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		if err := l.Extend(t.Context(), 5*time.Minute); err != nil {
			t.Fatal(err)
		}
		if left := time.Until(l.Deadline()); left < 5*time.Minute {
			t.Errorf("%v left", left)
		}
		time.Sleep(4 * time.Minute)
		if left := time.Until(l.Deadline()); left < time.Minute {
			t.Errorf("a renewal shortened it: %v left", left)
		}
		for _, d := range []time.Duration{0, -1} {
			if err := l.Extend(t.Context(), d); err == nil {
				t.Errorf("Extend(%v) says nothing", d)
			}
		}
		on(h, &h.renew, noRenewals)
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		if err := l.Extend(ctx, time.Hour); !errors.Is(err, ErrUnavailable) ||
			!errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("on a hung engine: %v", err)
		}
		mustUnlock(t, l)
	})
}

func TestManyHolds_AreRenewedTogetherByOneGoroutine(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		before := settled()
		var leases []*Lease
		for i := range 1000 {
			leases = append(leases, mustLock(t, t.Context(), c, string(rune('a'+i%26))+time.Duration(i).String()))
		}
		synctest.Wait()
		if n := settled() - before; n > 10 { // a few may belong to tests that are just ending
			t.Errorf("1000 holds cost %d goroutines", n)
		}
		time.Sleep(time.Minute)
		if lost := slices.IndexFunc(leases, func(l *Lease) bool { return l.Err() != nil }); lost >= 0 {
			t.Errorf("hold %d was lost", lost)
		}
		if n := h.batches.Load(); n > 7 {
			t.Errorf("%d batches in a minute, want one each 10 s", n)
		}
		for _, l := range leases {
			mustUnlock(t, l)
		}
	})
}

func TestOneSlowShard_DelaysNobodyElse(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.renew, func(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
			for i, r := range batch {
				if r.Name == "fast" {
					h.Driver.Renew(ctx, []driver.Renewal{r}, func(_ int, err error) { done(i, err) })
				}
			}
			<-ctx.Done()
			for i, r := range batch {
				if r.Name == "slow" {
					done(i, ctx.Err())
				}
			}
		})
		slow, fast := mustLock(t, t.Context(), c, "slow"), mustLock(t, t.Context(), c, "fast")
		<-slow.Lost()
		time.Sleep(5 * time.Minute)
		if err := fast.Err(); err != nil {
			t.Errorf("lost beside a slow one: %v", err)
		}
		mustUnlock(t, fast)
	})
}

func TestTwoRenewalPauses_EachKeepTheirOwn(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		var short, long atomic.Int64
		on(h, &h.renew, func(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
			for _, r := range batch {
				if r.Name == "short" {
					short.Add(1)
				} else {
					long.Add(1)
				}
			}
			h.Driver.Renew(ctx, batch, done)
		})
		m := c.Mutex("short", &LockOptions{Lease: 3 * second})
		a, err := m.Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		b := mustLock(t, t.Context(), c, "long")
		time.Sleep(60*second + 1)
		if s, l := short.Load(), long.Load(); s < 55 || s > 75 || l < 5 || l > 8 {
			t.Errorf("in a minute %d renewals of a 3 s lease and %d of a 30 s one", s, l)
		}
		mustUnlock(t, a)
		mustUnlock(t, b)
	})
}
