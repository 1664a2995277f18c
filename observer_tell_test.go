package interlock

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// ledger counts the holds that exist according to what an Observer was told.
type ledger struct {
	mu             sync.Mutex
	acquired, over int
	held           map[string]int // by name
	wrong          []string
}

func (g *ledger) observer() *Observer {
	return &Observer{
		Acquired: func(_ context.Context, e Event) { g.count(e, 1) },
		Lost:     func(e Event) { g.count(e, -1) },
		Released: func(e Event) { g.count(e, -1) },
	}
}

func (g *ledger) count(e Event, by int) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held == nil {
		g.held = make(map[string]int)
	}
	if g.held[e.Name] += by; g.held[e.Name] < 0 {
		g.wrong = append(g.wrong, "an end before its beginning: "+e.Name)
	}
	if by > 0 {
		g.acquired++
	} else {
		g.over++
	}
}

// balances fails unless acquired holds were told of, and the end of each.
func (g *ledger) balances(t *testing.T, acquired int) {
	t.Helper()
	synctest.Wait()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.acquired != acquired || g.over != acquired || len(g.wrong) > 0 {
		t.Errorf("told of %d holds and %d ends, %v, want %d of each", g.acquired, g.over, g.wrong, acquired)
	}
}

func TestObserver_EachHoldHasOneEnd_WhateverTheVerb(t *testing.T) {
	for name, verb := range map[string]struct {
		holds int
		run   func(t *testing.T, c *Client, h *hooks)
	}{
		"Lock": {1, func(t *testing.T, c *Client, _ *hooks) {
			l := mustLock(t, t.Context(), c, "a")
			mustUnlock(t, l)
			_ = l.Unlock(t.Context())
		}},
		"re-entry": {2, func(t *testing.T, c *Client, _ *hooks) {
			l := mustLock(t, t.Context(), c, "a")
			mustUnlock(t, mustLock(t, l.Context(t.Context()), c, "a"))
			mustUnlock(t, l)
		}},
		"re-entry, lost": {2, func(t *testing.T, c *Client, h *hooks) {
			l := mustLock(t, t.Context(), c, "a")
			inner := mustLock(t, l.Context(t.Context()), c, "a")
			on(h, &h.renew, noRenewals)
			<-inner.Lost()
			_, _ = l.Unlock(t.Context()), inner.Unlock(t.Context())
		}},
		"TryDo": {1, func(t *testing.T, c *Client, _ *hooks) {
			if done, err := c.Mutex("a", nil).TryDo(t.Context(), func(context.Context) error { return nil }); !done ||
				err != nil {
				t.Error(done, err)
			}
		}},
		"Upgrade": {1, func(t *testing.T, c *Client, _ *hooks) {
			l := must(t)(c.RWMutex("a", nil).UpgradeableRLock(t.Context()))
			for range 2 {
				if err := errors.Join(l.Upgrade(t.Context()), l.Downgrade(t.Context())); err != nil {
					t.Error(err)
				}
			}
			mustUnlock(t, l)
		}},
		"Upgrade, lost": {1, func(t *testing.T, c *Client, h *hooks) {
			l := must(t)(c.RWMutex("a", nil).UpgradeableRLock(t.Context()))
			if err := l.Upgrade(t.Context()); err != nil {
				t.Error(err)
			}
			on(h, &h.renew, noRenewals)
			<-l.Lost()
		}},
		"Lock beside an upgradeable read": {2, func(t *testing.T, c *Client, _ *hooks) {
			m := c.RWMutex("a", nil)
			l := must(t)(m.UpgradeableRLock(t.Context()))
			mustUnlock(t, must(t)(m.Lock(l.Context(t.Context()))))
			mustUnlock(t, l)
		}},
		"Downgrade": {1, func(t *testing.T, c *Client, _ *hooks) {
			l := must(t)(c.RWMutex("a", nil).Lock(t.Context()))
			if err := l.Downgrade(t.Context()); err != nil {
				t.Error(err)
			}
			mustUnlock(t, l)
		}},
		"permits": {2, func(t *testing.T, c *Client, _ *hooks) {
			s := c.Semaphore("a", 3, nil)
			one, two := must(t)(s.Acquire(t.Context(), 1)), must(t)(s.TryAcquire(t.Context(), 2))
			mustUnlock(t, one)
			mustUnlock(t, two)
		}},
		"Cond.Wait": {3, func(t *testing.T, c *Client, _ *hooks) {
			out := waitLater(t.Context(), c, mustLock(t, t.Context(), c, "a"))
			mustSignal(t, c)
			ctx, cancel := context.WithCancel(t.Context())
			out = waitLater(ctx, c, woken(t, "who waits", out))
			synctest.Wait()
			mustUnlock(t, mustLock(t, t.Context(), c, "a"))
			cancel()
			<-out
		}},
		"Multi": {4, func(t *testing.T, c *Client, _ *hooks) {
			m := c.Multi([]string{"a", "b"}, nil)
			for range 2 {
				l, err := m.Lock(t.Context())
				if err != nil || l.Unlock(t.Context()) != nil {
					t.Error(err)
				}
			}
		}},
		"Multi, given back": {2, func(t *testing.T, c *Client, _ *hooks) {
			b := mustLock(t, t.Context(), c, "b")
			ctx, cancel := context.WithTimeout(t.Context(), second)
			defer cancel()
			if _, err := c.Multi([]string{"a", "b"}, nil).Lock(ctx); err == nil {
				t.Error("it was had")
			}
			mustUnlock(t, b)
		}},
		"Campaign": {2, func(t *testing.T, c *Client, _ *hooks) {
			l := must(t)(c.Election("a", nil).Campaign(t.Context(), "x"))
			next := later(func() (*Lease, error) { return c.Election("a", nil).Campaign(t.Context(), "y") })
			synctest.Wait()
			mustUnlock(t, l)
			mustUnlock(t, (<-next).lease)
		}},
		"Abandon": {1, func(t *testing.T, c *Client, _ *hooks) {
			if err := mustLock(t, t.Context(), c, "a").Abandon(); err != nil {
				t.Error(err)
			}
		}},
		"Extend, and the end of a fixed lease": {1, func(t *testing.T, c *Client, _ *hooks) {
			l := must(t)(c.Mutex("a", &LockOptions{NoRenew: true}).Lock(t.Context()))
			if err := l.Extend(t.Context(), time.Minute); err != nil {
				t.Error(err)
			}
			<-l.Lost()
			_ = l.Unlock(t.Context())
		}},
		"MinHold": {1, func(t *testing.T, c *Client, _ *hooks) {
			mustUnlock(t, must(t)(c.Mutex("a", &LockOptions{MinHold: time.Minute}).Lock(t.Context())))
			time.Sleep(2 * time.Minute)
		}},
		"Break": {1, func(t *testing.T, c *Client, _ *hooks) {
			l := mustLock(t, t.Context(), c, "a")
			if err := c.Break(t.Context(), KindMutex, "a", l.Token()); err != nil {
				t.Error(err)
			}
			<-l.Lost()
		}},
		"Close": {3, func(t *testing.T, c *Client, _ *hooks) {
			l := mustLock(t, t.Context(), c, "a")
			mustLock(t, l.Context(t.Context()), c, "a")
			mustLock(t, t.Context(), c, "b")
		}},
	} {
		t.Run(name, func(t *testing.T) {
			var g ledger
			bubble(t, &Options{Observer: g.observer()}, func(t *testing.T, c *Client, h *hooks) {
				verb.run(t, c, h)
				_ = c.Close()
				g.balances(t, verb.holds)
			})
		})
	}
}

// A hold may end before the Observer is told that it began. Then nobody gets it, or the Observer is told of its end
// after its beginning.
func TestObserver_AHoldThatEndsBeforeItIsTold_IsToldInOrderOrNotAtAll(t *testing.T) {
	var g ledger
	o := g.observer()
	acquired := o.Acquired
	var client atomic.Pointer[Client]
	o.Acquired = func(ctx context.Context, e Event) {
		if e.Name == "a" { // an operator is quicker than this
			_ = client.Load().Break(ctx, KindMutex, e.Name, e.Token)
			time.Sleep(second)
		}
		acquired(ctx, e)
	}
	bubble(t, &Options{Observer: o}, func(t *testing.T, c *Client, h *hooks) {
		client.Store(c)
		l := mustLock(t, t.Context(), c, "a")
		wantLost(t, l.Err(), LostBroken)
		g.balances(t, 1)

		got := 0
		for range 20 { // whether it is granted or its context has ended is for chance to say
			ctx, cancel := context.WithCancel(t.Context())
			on(h, &h.acquire, func(_ context.Context, r *driver.Request) (driver.Grant, error) {
				grant, err := h.Driver.Acquire(t.Context(), r)
				cancel() // in the instant in which it is granted
				return grant, err
			})
			if l, err := c.Lock(ctx, "b"); err == nil {
				got++
				mustUnlock(t, l)
			}
			synctest.Wait()
		}
		g.balances(t, 1+got)
	})
}
