package interlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/internal/core"
)

func TestUpgraded_IsLostAsAWhole(t *testing.T) {
	var told []Event
	opts := &Options{Observer: &Observer{Lost: func(e Event) { told = append(told, e) }}}
	for name, lose := range map[string]func(t *testing.T, c *Client, h *hooks, l *Lease){
		"broken by the token of the write": func(t *testing.T, c *Client, _ *hooks, l *Lease) {
			if err := c.Break(t.Context(), KindRWMutex, "x", l.Token()); err != nil {
				t.Error(err)
			}
		},
		"the write is gone": func(t *testing.T, _ *Client, h *hooks, l *Lease) {
			_ = h.Driver.Release(t.Context(), &driver.Release{Key: l.hold().Lock.Key(), ID: l.hold().Engine.ID})
			time.Sleep(defaultLease)
		},
		"the read is gone": func(t *testing.T, _ *Client, h *hooks, l *Lease) {
			_ = h.Driver.Release(t.Context(), &driver.Release{Key: l.hold().Lock.Key(), ID: l.hold().Below.ID})
			time.Sleep(defaultLease)
		},
		"no renewal": func(_ *testing.T, _ *Client, h *hooks, _ *Lease) {
			on(h, &h.renew, noRenewals)
			time.Sleep(defaultLease)
			on(h, &h.renew, h.Driver.Renew)
		},
	} {
		t.Run(name, func(t *testing.T) {
			told = nil
			bubble(t, opts, func(t *testing.T, c *Client, h *hooks) {
				ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
				up := must(t)(m.UpgradeableRLock(ctx))
				if err := up.Upgrade(ctx); err != nil {
					t.Fatal(err)
				}
				token, work := up.Token(), up.Context(ctx)
				lose(t, c, h, up)
				synctest.Wait()
				if !isClosed(up.Lost()) || !errors.Is(context.Cause(work), ErrLost) {
					t.Errorf("the holder is not told: %v", up.Err())
				}
				wantErr(t, "Unlock", up.Unlock(ctx), ErrLost)
				synctest.Wait()
				mustUnlock(t, must(t)(other.TryLock(ctx)))
				if len(told) != 1 || told[0].Token != token {
					t.Errorf("the observer was told %+v, want one loss of token %d", told, token)
				}
				if len(c.in().EngineHolds) != 0 {
					t.Errorf("%d grants are left", len(c.in().EngineHolds))
				}
			})
		})
	}
}

func TestUpgraded_UnlockOnAHungEngine_ReturnsSoonAfterTheEndOfItsContext(t *testing.T) {
	for name, after := range map[string]time.Duration{"that ended before": 0, "that ends meanwhile": second} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				up := must(t)(c.RWMutex("x", nil).UpgradeableRLock(t.Context()))
				if err := up.Upgrade(t.Context()); err != nil {
					t.Fatal(err)
				}
				on(h, &h.release, func(ctx context.Context, _ *driver.Release) error { <-ctx.Done(); return ctx.Err() })
				defer on(h, &h.release, h.Driver.Release)
				ctx, cancel := context.WithTimeout(t.Context(), after)
				defer cancel()
				start := time.Now()
				wantErr(t, "Unlock", up.Unlock(ctx), ErrUnavailable)
				if late := time.Since(start) - after; late > 50*time.Millisecond {
					t.Errorf("returned %v after the end of its context", late)
				}
			})
		})
	}
}

func TestUpgraded_WithAnEndOfItsOwn_EndsAsAWhole(t *testing.T) {
	for name, o := range map[string]*LockOptions{
		"NoRenew": {Lease: time.Minute, NoRenew: true},
		"MaxHold": {MaxHold: time.Minute},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				ctx, m, other := t.Context(), c.RWMutex("x", o), peer(t, h, nil).RWMutex("x", nil)
				up := must(t)(m.UpgradeableRLock(ctx))
				time.Sleep(30 * time.Second)
				if err := up.Upgrade(ctx); err != nil {
					t.Fatal(err)
				}
				if left := time.Until(up.Deadline()); left > 31*time.Second {
					t.Errorf("the upgrade has lengthened the hold: %v are left", left)
				}
				want := 30 * time.Second
				if o.NoRenew {
					if err := up.Extend(ctx, time.Hour); err != nil {
						t.Fatal(err)
					}
					want = time.Hour
				}
				time.Sleep(want - 2*time.Second)
				_, err := other.TryRLock(ctx)
				wantErr(t, "a reader before the end", err, ErrHeld)
				if up.Err() != nil {
					t.Fatalf("lost before the end: %v", up.Err())
				}
				time.Sleep(3 * time.Second)
				wantLost(t, up.Err(), LostExpired)
				synctest.Wait()
				mustUnlock(t, must(t)(other.TryLock(ctx)))
			})
		})
	}
}

func TestUpgraded_Abandoned_IsLeftToRunOutAsAWhole(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		up := must(t)(m.UpgradeableRLock(ctx))
		if err := up.Upgrade(ctx); err != nil {
			t.Fatal(err)
		}
		if err := up.Abandon(); err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		mustUnlock(t, must(t)(other.RLock(ctx)))
		if waited := time.Since(start); waited < defaultLease*9/10 {
			t.Errorf("a reader got in after %v", waited)
		}
	})
}

func TestStamps_OfAnUpgradeAndItsDowngrade_PassTheFence_AndOthersOfBeforeDoNot(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		ctx, m := t.Context(), c.RWMutex("x", nil)
		var guard fence.MemoryGuard
		passes := func(l *Lease, when string) {
			t.Helper()
			s, _ := l.Stamp()
			if err := guard.Check("x", s); err != nil {
				t.Errorf("%s: %v", when, err)
			}
		}
		old := must(t)(m.RLock(ctx))
		stale, _ := old.Stamp()
		mustUnlock(t, old)
		up := must(t)(m.UpgradeableRLock(ctx))
		beside := must(t)(m.RLock(up.Context(ctx)))
		passes(up, "the upgradeable read")
		passes(beside, "a read beside it")
		if err := up.Upgrade(ctx); err != nil {
			t.Fatal(err)
		}
		passes(up, "the upgrade")
		passes(beside, "the read beside it, after the write")
		passes(up, "the upgrade again")
		if err := up.Downgrade(ctx); err != nil {
			t.Fatal(err)
		}
		passes(up, "the downgrade")
		if err := guard.Check("x", stale); err == nil {
			t.Error("a read from before the write passes")
		}
		mustUnlock(t, beside)
		mustUnlock(t, up)
		write := must(t)(m.Lock(ctx))
		passes(write, "another write")
		if err := write.Downgrade(ctx); err != nil {
			t.Fatal(err)
		}
		passes(write, "what is left of it")
		mustUnlock(t, write)
	})
}

func TestUpgraded_WithMinHold_StaysClosedForTheRest(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, m, other := t.Context(), c.RWMutex("x", &LockOptions{MinHold: time.Minute}), peer(t, h, nil).RWMutex("x",
			nil)
		start := time.Now()
		up := must(t)(m.UpgradeableRLock(ctx))
		if err := up.Upgrade(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * time.Second)
		mustUnlock(t, up)
		mustUnlock(t, must(t)(other.RLock(ctx)))
		if waited := time.Since(start); waited < time.Minute || waited > time.Minute+time.Second {
			t.Errorf("a reader got in after %v", waited)
		}
		start = time.Now()
		write := must(t)(m.Lock(ctx))
		if err := write.Downgrade(ctx); err != nil {
			t.Fatal(err)
		}
		mustUnlock(t, must(t)(other.TryRLock(ctx))) // the owner still reads
		mustUnlock(t, write)
		mustUnlock(t, must(t)(other.Lock(ctx)))
		if waited := time.Since(start); waited < time.Minute || waited > time.Minute+time.Second {
			t.Errorf("a writer got in after %v", waited)
		}
	})
}

func TestUpgraded_WithLockDelay_IsClosedAfterALoss(t *testing.T) {
	for name, whose := range map[string]func(l *Lease) *core.EngineHold{
		"the write": func(l *Lease) *core.EngineHold { return l.hold().Engine },
		"the read":  func(l *Lease) *core.EngineHold { return l.hold().Below },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				ctx, m := t.Context(), c.RWMutex("x", &LockOptions{LockDelay: time.Hour})
				other := peer(t, h, nil).RWMutex("x", nil)
				up := must(t)(m.UpgradeableRLock(ctx))
				if err := up.Upgrade(ctx); err != nil {
					t.Fatal(err)
				}
				c.in().Lock()
				c.in().LoseAndRelease(whose(up), LostUnconfirmed) // as at the end of its trust
				c.in().Unlock()
				start := time.Now()
				mustUnlock(t, must(t)(other.RLock(ctx)))
				if waited := time.Since(start); waited < time.Hour || waited > time.Hour+time.Minute {
					t.Errorf("a reader got in after %v", waited)
				}
				wantErr(t, "Unlock", up.Unlock(ctx), ErrLost)
			})
		})
	}
}

func TestUpgraded_TwoHoldsOfOneRead_ShareItsEndAndNothingElse(t *testing.T) {
	for name, end := range map[string]func(c *Client, a, b *Lease) (bothLost bool){
		"the read is lost": func(c *Client, a, _ *Lease) bool {
			c.in().LoseAndRelease(a.hold().Below, LostUnconfirmed)
			return true
		},
		"one write is lost": func(c *Client, a, _ *Lease) bool {
			c.in().LoseAndRelease(a.hold().Engine, LostUnconfirmed)
			return false
		},
	} {
		t.Run(name, func(t *testing.T) {
			var told []Event
			opts := &Options{Observer: &Observer{Lost: func(e Event) { told = append(told, e) }}}
			bubble(t, opts, func(t *testing.T, c *Client, h *hooks) {
				ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
				a := must(t)(m.UpgradeableRLock(ctx))
				b := must(t)(m.UpgradeableRLock(a.Context(ctx)))
				for _, l := range []*Lease{a, b} {
					if err := l.Upgrade(ctx); err != nil {
						t.Fatal(err)
					}
				}
				c.in().Lock()
				both := end(c, a, b)
				c.in().Unlock()
				synctest.Wait()
				wantErr(t, "the first", a.Unlock(ctx), ErrLost)
				if both {
					wantErr(t, "the second", b.Unlock(ctx), ErrLost)
				} else {
					time.Sleep(2 * defaultLease) // its write and the read are renewed
					if err := b.Downgrade(ctx); err != nil || !isShared(t, b) {
						t.Errorf("the second: %v", err)
					}
					_, err := other.TryUpgradeableRLock(ctx)
					wantErr(t, "another upgradeable read", err, ErrHeld)
					mustUnlock(t, b)
				}
				synctest.Wait()
				mustUnlock(t, must(t)(other.TryLock(ctx)))
				if want := map[bool]int{true: 2, false: 1}[both]; len(told) != want || len(c.in().EngineHolds) != 0 {
					t.Errorf("%d losses were told, want %d; %d grants are left", len(told), want,
						len(c.in().EngineHolds))
				}
			})
		})
	}
}

func TestUpgraded_WithAFurtherWrite_LeavesTheWriteToThat(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		up := must(t)(m.UpgradeableRLock(ctx))
		if err := up.Upgrade(ctx); err != nil {
			t.Fatal(err)
		}
		further := must(t)(m.Lock(up.Context(ctx)))
		if further.hold().Engine != up.hold().Engine {
			t.Fatal("the further write has a grant of its own")
		}
		_, err := further.Handle()
		wantErr(t, "a handle of it", err, ErrNested)
		mustUnlock(t, up)
		time.Sleep(2 * defaultLease) // renewed
		_, err = other.TryRLock(ctx)
		wantErr(t, "a reader", err, ErrHeld)
		mustUnlock(t, further)
		mustUnlock(t, must(t)(other.TryLock(ctx)))
	})
}

func TestUpgraded_WhenItsClientIsClosed_IsToldToBeReleasedOnce(t *testing.T) {
	var told []Event
	opts := &Options{Observer: &Observer{
		Acquired: func(context.Context, Event) {},
		Released: func(e Event) { told = append(told, e) },
	}}
	bubble(t, opts, func(t *testing.T, c *Client, h *hooks) {
		ctx, other := t.Context(), peer(t, h, nil).RWMutex("x", nil)
		up := must(t)(c.RWMutex("x", nil).UpgradeableRLock(ctx))
		if err := up.Upgrade(ctx); err != nil {
			t.Fatal(err)
		}
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		wantErr(t, "Unlock", up.Unlock(ctx), ErrReleased)
		mustUnlock(t, must(t)(other.TryLock(ctx)))
		if len(told) != 1 || told[0].Token != up.Token() {
			t.Errorf("the observer was told %+v, want one release of token %d", told, up.Token())
		}
	})
}

// The release of the write that a downgrade has left is still under way when the hold writes again.
func TestDowngrade_WhoseReleaseIsAnsweredAfterTheNextUpgrade_IsOfTheFirstWrite(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		up, goOn := must(t)(c.RWMutex("x", nil).UpgradeableRLock(t.Context())), make(chan struct{})
		if err := up.Upgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		first := up.hold().Engine.ID
		on(h, &h.release, func(ctx context.Context, r *driver.Release) error {
			if r.ID != first {
				t.Errorf("%s is released, want %s", r.ID, first)
			}
			select {
			case <-goOn:
				_ = h.Driver.Release(ctx, r)
				return &LostError{Kind: r.Kind, Name: r.Name, Reason: LostExpired}
			case <-ctx.Done():
				return ctx.Err()
			}
		})
		bounded, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		wantErr(t, "Downgrade", up.Downgrade(bounded), ErrUnavailable)
		if err := up.Upgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		close(goOn)
		synctest.Wait()
		on(h, &h.release, h.Driver.Release)
		if err := up.Err(); err != nil || isShared(t, up) {
			t.Errorf("the second write: %v", err)
		}
		mustUnlock(t, up)
	})
}
