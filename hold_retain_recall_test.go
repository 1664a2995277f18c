package interlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/grants"
	"github.com/interlock-go/interlock/internal/shell"
)

// getsInWithin takes the lock by c, and fails if that takes longer than d.
func getsInWithin(t *testing.T, c *Client, name string, d time.Duration) *Lease {
	t.Helper()
	begin := time.Now()
	l := mustLock(t, t.Context(), c, name)
	if took := time.Since(begin); took > d {
		t.Errorf("it took %v, want at most %v", took, d)
	}
	return l
}

func TestRetain_AnotherClientThatAsks_GetsTheLockAtOnce(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		first := pair(t, c, "a")
		other := peer(t, h, nil)
		l := getsInWithin(t, other, "a", 0)
		if l.Token() <= first.Token() {
			t.Errorf("token %d after %d", l.Token(), first.Token())
		}
		mustUnlock(t, l)
		synctest.Wait()
		if n := h.releases.Load(); n != 1 {
			t.Errorf("the retainer has sent %d releases, want 1", n)
		}
		mustUnlock(t, mustLock(t, t.Context(), c, "a"))
	})
}

func TestRetain_ATryOfAnother_GetsWhatIsMerelyRetained(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		pair(t, c, "a")
		other := peer(t, h, nil)
		l, err := other.TryLock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		mustUnlock(t, l)
	})
}

func TestRetain_ATryOfAHeldLock_WaitsForARecallAndNoLonger(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		begin := time.Now()
		_, err := peer(t, h, nil).TryLock(t.Context(), "a")
		if !errors.Is(err, ErrHeld) || !driver.IsDefinite(err) {
			t.Errorf("got %v, want a definite refusal", err)
		}
		if took := time.Since(begin); took != shell.RecallWait {
			t.Errorf("it took %v, want %v", took, shell.RecallWait)
		}
		mustUnlock(t, l)
		synctest.Wait()
		if l := getsInWithin(t, c, "a", 0); l != nil { // the try has left nothing
			mustUnlock(t, l)
		}
	})
}

func TestWanted_IsClosedWhenAnotherAsks_AndTheLockIsNotRetainedThen(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		early := l.Wanted()
		if isClosed(early) {
			t.Error("wanted, and nobody has asked")
		}
		wait := lockLater(t.Context(), peer(t, h, nil), "a")
		synctest.Wait()
		if !isClosed(early) || !isClosed(l.Wanted()) {
			t.Error("another has asked, and the holder does not know")
		}
		begin := time.Now()
		mustUnlock(t, l)
		mustUnlock(t, (<-wait).lease)
		if took := time.Since(begin); took > 0 {
			t.Errorf("the other got in %v after Unlock", took)
		}
	})
}

func TestWanted_WithoutRetain_IsToldByTheNextRenewal(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		wait := lockLater(t.Context(), peer(t, h, nil), "a")
		begin := time.Now()
		<-l.Wanted()
		if took := time.Since(begin); took > 10*second {
			t.Errorf("it took %v, want at most a third of the lease", took)
		}
		mustUnlock(t, l)
		mustUnlock(t, (<-wait).lease)
	})
}

// deaf drops the first messages, times of them, which say that another client wants the lock.
func deaf(h *hooks, times int) {
	on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
		if tell := r.Wanted; tell != nil {
			r.Wanted = func() {
				if times--; times < 0 {
					tell()
				}
			}
		}
		return h.Driver.Acquire(ctx, r)
	})
}

func TestRetain_WhenAMessageIsLost_TheNextRenewalRecalls(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		deaf(h, 1)
		pair(t, c, "a")
		time.Sleep(second) // into its retention
		mustUnlock(t, getsInWithin(t, peer(t, h, nil), "a", grants.RetainLease/3))
	})
}

// A client that has waited for the lock does not retain it. Others may stand behind it whose message went to the holder
// before.
func TestRetain_ByOneWhoHasWaited_IsLeft(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		first, third := peer(t, h, nil), peer(t, h, nil)
		l := mustLock(t, t.Context(), first, "a")
		second := lockLater(t.Context(), c, "a")
		synctest.Wait()
		last := lockLater(t.Context(), third, "a")
		synctest.Wait()
		time.Sleep(aBlock)
		mustUnlock(t, l)
		begin := time.Now()
		mustUnlock(t, (<-second).lease)
		mustUnlock(t, (<-last).lease)
		if took := time.Since(begin); took > 0 {
			t.Errorf("the last got in after %v", took)
		}
	})
}

func TestRetain_RecalledAgainAndAgain_IsLeftForAWhile(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		recalled, skipped := 0, 0
		for range 40 {
			time.Sleep(2 * aBlock)
			before := h.releases.Load()
			pair(t, c, "a")
			if h.releases.Load() > before {
				skipped++
				continue
			}
			recalled++
			pair(t, other, "a")
			synctest.Wait()
		}
		t.Logf("retained %d times, and %d times not", recalled, skipped)
		if recalled > 7 { // the first two, and then after 2, 4, 8 and 16 more
			t.Errorf("retained and recalled %d times, and %d times not retained", recalled, skipped)
		}
	})
}

// Some calls of a client go to the engine by themselves, and find a hold there that their own client retains.
func TestRetain_WithOtherCallsOfTheSameClient_GivesWay(t *testing.T) {
	for name, lock := range map[string]func(ctx context.Context, c *Client) (func(context.Context) error, error){
		"a named owner": func(ctx context.Context, c *Client) (func(context.Context) error, error) {
			l, err := c.Lock(WithOwner(ctx, "me"), "a")
			return l.Unlock, err
		},
		"a named owner's try": func(ctx context.Context, c *Client) (func(context.Context) error, error) {
			l, err := c.TryLock(WithOwner(ctx, "me"), "a")
			return l.Unlock, err
		},
		"another lease": func(ctx context.Context, c *Client) (func(context.Context) error, error) {
			l, err := c.Mutex("a", &LockOptions{Lease: 5 * second}).TryLock(ctx)
			return l.Unlock, err
		},
		"a multi": func(ctx context.Context, c *Client) (func(context.Context) error, error) {
			l, err := c.Multi([]string{"a", "b"}, nil).Lock(ctx)
			return l.Unlock, err
		},
		"a multi's try": func(ctx context.Context, c *Client) (func(context.Context) error, error) {
			l, err := c.Multi([]string{"a", "b"}, nil).TryLock(ctx)
			return l.Unlock, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, retaining, func(t *testing.T, c *Client, _ *hooks) {
				pair(t, c, "a")
				begin := time.Now()
				unlock, err := lock(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begin); took > 0 {
					t.Errorf("it took %v", took)
				}
				if err := unlock(t.Context()); err != nil {
					t.Error(err)
				}
				pair(t, c, "a")
			})
		})
	}
}

// A Multi is tried in one step, which a mere retention refuses. Whoever retains gives way to it as to any other try.
func TestRetain_ATryOfAMulti_GetsWhatIsMerelyRetained(t *testing.T) {
	for name, options := range map[string]*LockOptions{
		"like the retained ones": nil,
		"with another lease":     {Lease: 20 * second},
	} {
		for by, names := range map[string][2][]string{ // retained by the client itself, and by another
			"the client":             {{"a", "b"}, nil},
			"another":                {nil, {"a", "c"}},
			"the client and another": {{"a", "b"}, {"c"}},
		} {
			t.Run(by+", "+name, func(t *testing.T) {
				bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
					other := peer(t, h, retaining)
					for i, retains := range []*Client{c, other} {
						for _, name := range names[i] {
							pair(t, retains, name)
						}
					}
					l, err := c.Multi([]string{"a", "b", "c"}, options).TryLock(t.Context())
					if err != nil {
						t.Fatal(err)
					}
					if err := l.Unlock(t.Context()); err != nil {
						t.Fatal(err)
					}
				})
			})
		}
	}
}

func TestRetain_ATryOfAMulti_OfWhatIsHeld_IsRefusedAndKeepsNothing(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, retaining)
		pair(t, other, "a")
		held := mustLock(t, t.Context(), other, "b")
		if _, err := c.Multi([]string{"a", "b"}, nil).TryLock(t.Context()); !errors.Is(err, ErrHeld) {
			t.Fatalf("got %v", err)
		}
		mustUnlock(t, must(t)(other.TryLock(t.Context(), "a")))
		mustUnlock(t, held)
	})
}
