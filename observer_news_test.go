package interlock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/internal/trust"
	"github.com/interlock-go/interlock/memlock"
)

func TestObserver_HearsOfRenewalsThatFail_BeforeTheLoss(t *testing.T) {
	for name, renew := range map[string]func(context.Context, []driver.Renewal, func(int, error)){
		"refused": failAll, "not answered": noRenewals,
	} {
		t.Run(name, func(t *testing.T) {
			var m minutes
			bubble(t, &Options{Observer: m.observer()}, func(t *testing.T, c *Client, h *hooks) {
				l := mustLock(t, t.Context(), c, "a")
				on(h, &h.renew, renew)
				<-l.Lost()
				failed, lost := m.of("RenewalFailed"), m.one(t, "Lost")
				if len(failed) == 0 || slices.Index(m.last, "RenewalFailed") > slices.Index(m.last, "Lost") {
					t.Fatalf("told %q", m.last)
				}
				left := defaultLease
				for _, e := range failed {
					if e.Hold != lost.Hold || e.Remained <= 0 || e.Remained >= left ||
						!errors.Is(e.Err, ErrUnavailable) {
						t.Errorf("of %+v, after one with %v left: %+v", lost.Hold, left, e)
					}
					left = e.Remained
				}
				if lost.Reason != LostUnconfirmed {
					t.Errorf("lost because of %q", lost.Reason)
				}
			})
		})
	}
}

func TestObserver_HearsWhichRenewalWasANearMiss(t *testing.T) {
	for _, row := range []struct {
		outage time.Duration // since the grant
		late   bool
	}{
		{0, false},
		{defaultLease * 2 / 5, false},
		{defaultLease/2 + time.Second, true},
		{defaultLease - 2*time.Second, true},
	} {
		t.Run(row.outage.String(), func(t *testing.T) {
			var m minutes
			bubble(t, &Options{Observer: m.observer()}, func(t *testing.T, c *Client, h *hooks) {
				l := mustLock(t, t.Context(), c, "a")
				on(h, &h.renew, failAll)
				time.Sleep(row.outage)
				on(h, &h.renew, h.Driver.Renew)
				for len(m.of("Renewed")) == 0 {
					time.Sleep(10 * time.Millisecond)
				}
				e, now := m.one(t, "Renewed"), c.in().Reading().Since(l.hold().Since)
				margin := defaultLease - trust.Allowance(defaultLease) - now
				if e.Late != row.late || e.Margin < margin || e.Margin > margin+10*time.Millisecond ||
					e.Remained < e.Margin+defaultLease/4 {
					t.Errorf("after %v: %+v", now, e)
				}
				mustUnlock(t, l)
			})
		})
	}
}

// A retained lock can end in several ways. The Observer is told of each.
func TestObserver_HearsOfWhatIsRetained_AndOfItsEnd(t *testing.T) {
	for name, end := range map[string]struct {
		run      func(t *testing.T, c *Client, h *hooks, l *Lease)
		recalled bool
	}{
		"taken again": {func(t *testing.T, c *Client, _ *hooks, _ *Lease) {
			mustLock(t, t.Context(), c, "a")
		}, false},
		"over": {func(*testing.T, *Client, *hooks, *Lease) { time.Sleep(2 * time.Minute) }, false},
		"recalled": {func(t *testing.T, _ *Client, h *hooks, _ *Lease) {
			mustUnlock(t, mustLock(t, t.Context(), peer(t, h, nil), "a"))
		}, true},
		"broken": {func(t *testing.T, c *Client, _ *hooks, l *Lease) {
			if err := c.Break(t.Context(), KindMutex, "a", l.Token()); err != nil {
				t.Error(err)
			}
		}, false},
		"a renewal that failed": {func(_ *testing.T, _ *Client, h *hooks, _ *Lease) {
			on(h, &h.renew, failAll)
			time.Sleep(second)
		}, false},
		"Close": {func(t *testing.T, c *Client, _ *hooks, _ *Lease) {
			if err := c.Close(); err != nil {
				t.Error(err)
			}
		}, false},
	} {
		t.Run(name, func(t *testing.T) {
			var m minutes
			bubble(t, &Options{Retain: time.Minute, Observer: m.observer()}, func(t *testing.T, c *Client, h *hooks) {
				l := pair(t, c, "a")
				begun := m.one(t, "Retained")
				if n := len(m.of("RetentionEnded")); n > 0 || begun.Token != l.Token() || begun.Owner != l.Owner() {
					t.Errorf("%d ends of %+v", n, begun)
				}
				end.run(t, c, h, l)
				synctest.Wait()
				if over := m.one(t, "RetentionEnded"); over.Hold != begun.Hold {
					t.Errorf("the end of %+v is %+v", begun, over)
				}
				if got := len(m.of("Recalled")); (got == 1) != end.recalled || got > 1 {
					t.Errorf("recalled %d times", got)
				}
			})
		})
	}
}

func TestObserver_HearsThatALockIsWantedWhileItIsHeld_Once(t *testing.T) {
	var m minutes
	bubble(t, &Options{Observer: m.observer()}, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		out := lockLater(t.Context(), peer(t, h, nil), "a")
		time.Sleep(2 * defaultLease) // several renewals say so
		if e := m.one(t, "Recalled"); e.Owner != l.Owner() {
			t.Errorf("got %+v", e)
		}
		mustUnlock(t, l)
		mustUnlock(t, woken(t, "who waits", out))
	})
}

func TestObserver_HearsThatSomethingIsGivenBackInTheBackground(t *testing.T) {
	var m minutes
	bubble(t, &Options{Observer: m.observer()}, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.release, h.hung)
		on(h, &h.acquire, func(context.Context, *driver.Request) (driver.Grant, error) {
			return driver.Grant{}, errors.New("connection reset")
		})
		if _, err := c.Mutex("a", &LockOptions{Class: "stock"}).Lock(t.Context()); !errors.Is(err, ErrUnavailable) {
			t.Fatal(err)
		}
		if e := m.one(t, "Settling"); !e.Undo || e.Class != "stock" || e.Engine == "" {
			t.Errorf("began: %+v", e)
		}
		time.Sleep(defaultLease / 2)
		if n := len(m.of("Settled")); n > 0 {
			t.Error("it is over, and the engine has not answered")
		}
		on(h, &h.release, h.Driver.Release)
		time.Sleep(shell.SettleAttempt + shell.SettleMost)
		if e := m.one(t, "Settled"); !e.Undo || e.Err != nil {
			t.Errorf("over: %+v", e)
		}
	})
}

func TestObserver_KnowsAHoldByItsID_WhateverBecomesOfIt(t *testing.T) {
	var m minutes
	bubble(t, &Options{Observer: m.observer()}, func(t *testing.T, c *Client, _ *hooks) {
		l := must(t)(c.RWMutex("a", nil).UpgradeableRLock(t.Context()))
		first := m.one(t, "Acquired")
		if err := l.Upgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(defaultLease) // the read below it is renewed too
		for _, e := range append(m.of("Renewed"), m.one(t, "Upgraded")) {
			if e.Hold != first.Hold {
				t.Errorf("of another hold: %+v", e)
			}
		}
		beside := must(t)(c.RWMutex("a", nil).Lock(l.Context(t.Context())))
		if e := m.one(t, "Acquired"); e.Hold == first.Hold {
			t.Error("another hold of the owner has the same")
		}
		mustUnlock(t, beside)
		m.one(t, "Released")
		mustUnlock(t, l)
		if e := m.one(t, "Released"); e.Hold != first.Hold {
			t.Errorf("the end is of another hold: %+v", e)
		}
	})
}

func TestJoinObservers_TellsAll_AlsoAfterAPanic(t *testing.T) {
	var first, last minutes
	o := JoinObservers(nil, first.observer(), panicky("Acquired"), last.observer())
	bubble(t, &Options{Observer: o}, func(t *testing.T, c *Client, _ *hooks) {
		if p := panicOf(func() { _, _ = c.Lock(t.Context(), "a") }); !isBug(p) {
			t.Errorf("the panic came as %v", p)
		}
		for _, m := range []*minutes{&first, &last} {
			if a, r := m.one(t, "Acquired"), m.one(t, "Released"); a.Hold != r.Hold {
				t.Errorf("%+v has the end %+v", a, r)
			}
		}
	})
	if o := JoinObservers(nil, &Observer{}); o.Acquired != nil || o.Lost != nil {
		t.Error("what nobody has costs something")
	}
}

// Without an Observer, frequent calls must not allocate for events.
func TestObserver_ThatIsNotThere_CostsNothing(t *testing.T) {
	c := mustNew(t, memlock.New(nil), nil)
	defer c.Close()
	l := mustLock(t, t.Context(), c, "a")
	m, give := c.Mutex("a", nil), l.hold().Engine.ReleaseRequest()
	if n := testing.AllocsPerRun(1000, func() {
		at := c.in().NewCall()
		w := core.Waiter{Hold: l.hold(), Call: at}
		if shell.AnnouncementOf(t.Context(), &w) != nil || shell.CallOver(at) {
			t.Error("it announces to nobody")
		}
		shell.TellFailed(t.Context(), &m.lock, nil, at, ErrClosed)
		shell.TellHeld(t.Context(), l.hold(), shell.Facts{})
		shell.TellReleased(l.hold(), nil)
		c.in().Lock()
		c.in().ObserveRenewal(l.hold().Engine, c.in().Now(), second, second)
		c.in().ObserveFailure(l.hold().Engine, second, ErrClosed)
		shell.TellRecalled(l.hold().Engine)
		shell.TellRetained(l.hold().Engine).End()
		c.in().Unlock()
	}); n != 0 {
		t.Errorf("%v allocations", n)
	}
	if n := testing.AllocsPerRun(
		100,
		func() { _, _ = c.in().SettleNow(&m.lock, give) },
	); n > 8 { // contexts of the attempt
		t.Errorf("%v allocations of a settlement", n)
	}
}
