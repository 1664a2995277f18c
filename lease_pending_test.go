package interlock

import (
	"context"
	"errors"
	"maps"
	"testing"
	"testing/synctest"
	"time"
)

// pend calls Pending on l, which must succeed.
func pend(t *testing.T, l *Lease) (over func()) {
	t.Helper()
	over, err := l.Pending()
	if err != nil {
		t.Fatal(err)
	}
	return over
}

// onEach runs play on an engine with leases, and on one whose holds last as long as the process.
func onEach(t *testing.T, play func(t *testing.T, c, other *Client)) {
	for name, open := range map[string]func(t *testing.T, h *hooks) *Client{
		"leases":    func(t *testing.T, h *hooks) *Client { return mustNew(t, h, nil) },
		"no leases": func(t *testing.T, h *hooks) *Client { return mustNew(t, &forever{h}, nil) },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
				c := open(t, h)
				defer c.Close()
				play(t, c, peer(t, h, nil))
			})
		})
	}
}

func TestPending_AtTheEndOfMaxHold_TheLockRunsOutInsteadOfBeingGivenBack(t *testing.T) {
	onEach(t, func(t *testing.T, c, other *Client) {
		l, err := c.Mutex("a", &LockOptions{MaxHold: time.Minute}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer pend(t, l)()
		<-l.Lost()
		if got := heldFor(t, other); got < 15*second || got > 31*second {
			t.Errorf("another got it %v after the end, want the rest of a lease", got)
		}
	})
}

func TestPending_AtTheEndOfMaxHoldWithinAMinHold_TheLockRunsOut(t *testing.T) {
	onEach(t, func(t *testing.T, c, other *Client) {
		l := must(t)(c.Mutex("a", &LockOptions{MaxHold: time.Minute, MinHold: 65 * second}).Lock(t.Context()))
		defer pend(t, l)()
		<-l.Lost()
		if got := heldFor(t, other); got < 15*second || got > 31*second {
			t.Errorf("another got it %v after the end, want the rest of a lease", got)
		}
	})
}

func TestClose_AfterTheEndOfMaxHold_LeavesWhatIsPendingToRunOut(t *testing.T) {
	for name, others := range map[string]int{"alone": 0, "beside another hold": 1} {
		t.Run(name, func(t *testing.T) {
			onEach(t, func(t *testing.T, c, other *Client) {
				l := must(t)(c.Mutex("a", &LockOptions{MaxHold: time.Minute}).Lock(t.Context()))
				for range others {
					mustLock(t, l.Context(t.Context()), c, "a")
				}
				defer pend(t, l)()
				<-l.Lost()
				go c.Close() // ends long before the lock does
				if got := heldFor(t, other); got < 15*second || got > 35*second {
					t.Errorf("another got it %v after the end, want the rest of a lease", got)
				}
			})
		})
	}
}

func TestPending_AtTheEndOfTrust_NothingIsGivenBack(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		defer pend(t, l)()
		on(h, &h.renew, noRenewals)
		<-l.Lost()
		synctest.Wait()
		if n := h.releases.Load(); n != 0 {
			t.Errorf("released %d times although the engine's lease is not over", n)
		}
	})
}

func TestPending_OfAnUpgradedHold_LeavesTheWriteToRunOut(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		l, err := c.RWMutex("a", &LockOptions{MaxHold: time.Minute}).UpgradeableRLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Upgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		defer pend(t, l)()
		<-l.Lost()
		start := time.Now()
		r, err := other.RWMutex("a", nil).RLock(t.Context())
		if got := time.Since(start); err != nil || got < 15*second {
			t.Errorf("a reader: %v after %v, want the rest of a lease", err, got)
		}
		mustUnlock(t, r)
	})
}

func TestPending_ThatIsOver_LeavesNothingBehind(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		l := mustLock(t, t.Context(), c, "a")
		first, second := pend(t, l), pend(t, l)
		first()
		first()
		if c.in().Pending != 1 || l.hold().Pending != 1 {
			t.Errorf("%d and %d are pending, want one", c.in().Pending, l.hold().Pending)
		}
		second()
		mustUnlock(t, l)
		mustUnlock(t, mustLock(t, t.Context(), other, "a"))
		if _, err := l.Pending(); !errors.Is(err, ErrReleased) {
			t.Errorf("Pending of a released hold: %v", err)
		}
	})
}

func TestClose_WaitsForWhatIsPending_AndLetsNothingNewBegin(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c, other := mustNew(t, h, nil), peer(t, h, nil)
		l, idle := mustLock(t, t.Context(), c, "a"), mustLock(t, t.Context(), c, "b")
		over := pend(t, l)
		start, closed := time.Now(), make(chan error, 1)
		go func() { closed <- c.Close() }() // ends with over
		synctest.Wait()
		if _, err := idle.Pending(); !errors.Is(err, ErrClosed) {
			t.Errorf("Pending while the client is being closed: %v", err)
		}
		time.Sleep(second)
		if err := l.Err(); err != nil {
			t.Errorf("the hold has ended: %v", err)
		}
		mustUnlock(t, l)
		over()
		if err := <-closed; err != nil || time.Since(start) != second {
			t.Errorf("Close: %v after %v", err, time.Since(start))
		}
		for _, name := range []string{"a", "b"} {
			if l, err := other.TryLock(t.Context(), name); err != nil {
				t.Errorf("%s: %v", name, err)
			} else {
				mustUnlock(t, l)
			}
		}
	})
}

func TestClose_WhileSomethingIsPending_EndsWaitsAndQuestionsAtOnce(t *testing.T) {
	calls := maps.Clone(questions)
	calls["Observe"] = func(ctx context.Context, c *Client) (last error) {
		for _, err := range c.Election("e", nil).Observe(ctx) {
			last = err
		}
		return last
	}
	for name, held := range map[string]time.Duration{"Cond.Wait": 0, "Cond.Wait within a MinHold": time.Minute} {
		calls[name] = func(ctx context.Context, c *Client) error {
			l, err := c.Mutex("a", &LockOptions{MinHold: held}).Lock(ctx)
			if err == nil {
				_, err = condOf(c).Wait(ctx, l)
			}
			return err
		}
	}
	for name, ask := range calls {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
				c, said, closed := mustNew(t, mute{h}, nil), make(chan error, 1), make(chan error, 1)
				over := pend(t, mustLock(t, t.Context(), c, "pending"))
				go func() { said <- ask(t.Context(), c) }()
				stillWaits(t, said, "before Close")
				start := time.Now()
				go func() { closed <- c.Close() }() // ends with over
				wantErr(t, "during Close", <-said, ErrClosed)
				if got := time.Since(start); got != 0 {
					t.Errorf("it said so after %v", got)
				}
				over()
				if err := <-closed; err != nil {
					t.Error(err)
				}
			})
		})
	}
}

func TestClose_WhileSomethingStaysPending_LeavesTheLockToRunOut(t *testing.T) {
	onEach(t, func(t *testing.T, c, other *Client) {
		l, idle := mustLock(t, t.Context(), c, "a"), mustLock(t, t.Context(), c, "b")
		defer pend(t, l)()
		start := time.Now()
		if err := c.Close(); err != nil || time.Since(start) != c.in().Config.CloseTimeout/2 {
			t.Errorf("Close: %v after %v", err, time.Since(start))
		}
		if !errors.Is(l.Err(), ErrReleased) || !errors.Is(idle.Err(), ErrReleased) {
			t.Errorf("the holds say %v and %v", l.Err(), idle.Err())
		}
		if l, err := other.TryLock(t.Context(), "b"); err != nil {
			t.Errorf("b, with nothing under way: %v", err)
		} else {
			mustUnlock(t, l)
		}
		if got := heldFor(t, other); got < 25*second || got > 31*second {
			t.Errorf("another got it after %v, want a lease", got)
		}
	})
}
