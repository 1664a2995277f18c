package interlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/fence"
)

// must fails unless a call of an RWMutex or Semaphore has brought a hold.
func must(t *testing.T) func(l *Lease, err error) *Lease {
	return func(l *Lease, err error) *Lease {
		t.Helper()
		if err != nil {
			t.Fatalf("it must be granted: %v", err)
		}
		return l
	}
}

// wantErr fails unless err matches target.
func wantErr(t *testing.T, what string, err, target error) {
	t.Helper()
	if !errors.Is(err, target) {
		t.Fatalf("%s: %v, want %v", what, err, target)
	}
}

// later calls f in a goroutine and returns where the outcome will be.
func later(f func() (*Lease, error)) <-chan outcome {
	out := make(chan outcome, 1)
	go func() {
		l, err := f()
		out <- outcome{l, err}
	}()
	return out
}

// stillWaits fails if there is an outcome although nothing is left to happen at this instant.
func stillWaits[T any](t *testing.T, out <-chan T, when string) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-out:
		t.Fatalf("%s: it does not wait any more: %+v", when, got)
	default:
	}
}

// upgradeLater upgrades in a goroutine.
func upgradeLater(ctx context.Context, l *Lease) <-chan error {
	out := make(chan error, 1)
	go func() { out <- l.Upgrade(ctx) }()
	return out
}

func isShared(t *testing.T, l *Lease) bool {
	t.Helper()
	s, ok := l.Stamp()
	if !ok || s.Token != l.Token() || s.Nonce == "" {
		t.Fatalf("the stamp is %+v, %v, the token %d", s, ok, l.Token())
	}
	return s.Shared
}

func TestRWMutex_ReadersShareAndAWriterExcludes(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		one, two, three := must(t)(m.RLock(ctx)), must(t)(m.RLock(ctx)), must(t)(other.TryRLock(ctx))
		if !isShared(t, one) || one.Kind() != KindRWMutex || one.Name() != "x" {
			t.Errorf("a read says shared %v, %s %q", isShared(t, one), one.Kind(), one.Name())
		}
		_, err := other.TryLock(ctx)
		wantErr(t, "a try to write beside readers", err, ErrHeld)
		write := later(func() (*Lease, error) { return other.Lock(ctx) })
		stillWaits(t, write, "beside readers")
		_, err = m.TryRLock(ctx)
		wantErr(t, "a try to read in front of a writer", err, ErrHeld)
		late := later(func() (*Lease, error) { return m.RLock(ctx) })
		stillWaits(t, late, "behind a writer")
		mustUnlock(t, one)
		mustUnlock(t, two)
		stillWaits(t, write, "beside one reader")
		mustUnlock(t, three)
		w := <-write
		if w.err != nil || isShared(t, w.lease) || w.lease.Token() <= three.Token() {
			t.Fatalf("the write: %v, token %d after %d", w.err, w.lease.Token(), three.Token())
		}
		stillWaits(t, late, "beside a writer")
		mustUnlock(t, w.lease)
		mustUnlock(t, must(t)((<-late).lease, nil))
		if h.renewals.Load() != 0 || len(c.grants) != 0 || len(c.alone) != 0 {
			t.Errorf("left: %d renewals, %d grants, %d waiters", h.renewals.Load(), len(c.grants), len(c.alone))
		}
	})
}

func TestRWMutex_OwnersReenterBothWays(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		m, other := c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		write := must(t)(m.Lock(t.Context()))
		ctx := write.Context(t.Context())
		waiting := later(func() (*Lease, error) { return other.Lock(t.Context()) })
		synctest.Wait()
		again, read := must(t)(m.Lock(ctx)), must(t)(m.RLock(ctx))
		ctxRead := read.Context(t.Context())
		second, up := must(t)(m.TryRLock(ctxRead)), must(t)(m.ULock(ctxRead))
		if again.Token() != write.Token() || read.Token() != write.Token() || isShared(t, again) || !isShared(t, read) || !isShared(t, up) {
			t.Errorf("tokens %d, %d, %d", write.Token(), again.Token(), read.Token())
		}
		mustUnlock(t, write)
		mustUnlock(t, again)
		mustUnlock(t, up)
		mustUnlock(t, read)
		_, err := other.TryRLock(t.Context())
		wantErr(t, "a reader in front of who waits", err, ErrHeld)
		stillWaits(t, waiting, "beside a read that is left of a write")
		mustUnlock(t, second)
		mustUnlock(t, must(t)((<-waiting).lease, nil))
	})
}

func TestRWMutex_AWriteThatEndsLetsReadersInBesideItsOwnersRead(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		m, other := c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		write := must(t)(m.Lock(t.Context()))
		read := must(t)(m.RLock(write.Context(t.Context())))
		waiting := later(func() (*Lease, error) { return other.RLock(t.Context()) })
		stillWaits(t, waiting, "beside a write")
		mustUnlock(t, write)
		mustUnlock(t, must(t)((<-waiting).lease, nil))
		mustUnlock(t, read)
	})
}

func TestRWMutex_AReaderThatAsksToWrite_IsToldOfTheDeadlockAtOnce(t *testing.T) {
	for name, owner := range map[string]func(context.Context) context.Context{
		"anonymous": func(ctx context.Context) context.Context { return ctx },
		"named":     func(ctx context.Context) context.Context { return WithOwner(ctx, "order-7") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
				m := c.RWMutex("x", nil)
				read := must(t)(m.RLock(owner(t.Context())))
				ctx := read.Context(t.Context())
				_, err := m.Lock(ctx)
				wantErr(t, "Lock", err, ErrDeadlock)
				_, err = m.TryLock(ctx)
				wantErr(t, "TryLock", err, ErrDeadlock)
				wantErr(t, "Upgrade", read.Upgrade(ctx), ErrDeadlock)
				wantErr(t, "Downgrade", read.Downgrade(ctx), ErrConflict)
				if read.Err() != nil {
					t.Errorf("the read has ended: %v", read.Err())
				}
				mustUnlock(t, read)
				mustUnlock(t, must(t)(m.TryLock(t.Context())))
			})
		})
	}
}

func TestUpgrade_WaitsForTheReadersBeforeEverybodyElse(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		up := must(t)(m.ULock(ctx))
		token, stamp := up.Token(), nonceOf(t, up)
		beside := must(t)(m.ULock(up.Context(ctx)))
		read := must(t)(other.RLock(ctx))
		_, err := other.TryULock(ctx)
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
		up, read := must(t)(m.ULock(ctx)), must(t)(other.RLock(ctx))
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
		_, err = other.TryULock(ctx)
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
		up := must(t)(m.ULock(ctx))
		on(h, &h.convert, func(ctx context.Context, beside string, r *driver.Request) (driver.Grant, error) {
			on(h, &h.convert, h.Driver.Convert)
			if _, err := h.Driver.Convert(ctx, beside, r); err != nil {
				t.Errorf("the engine: %v", err)
			}
			return driver.Grant{}, &UnavailableError{Op: "convert", Name: r.Name, Err: errors.New("the reply was lost")}
		})
		wantErr(t, "Upgrade", up.Upgrade(ctx), ErrUnavailable)
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
			if err := h.Driver.Release(t.Context(), &driver.Release{Key: l.m.key, ID: l.g.id}); err != nil {
				t.Error(err)
			}
			return LostExpired
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
				up, read := must(t)(m.ULock(ctx)), must(t)(other.RLock(ctx))
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
		up, read := must(t)(m.ULock(ctx)), must(t)(other.RLock(ctx))
		upgraded := upgradeLater(ctx, up)
		synctest.Wait()
		mustUnlock(t, up)
		wantErr(t, "Upgrade", <-upgraded, ErrReleased)
		mustUnlock(t, read)
		synctest.Wait()
		mustUnlock(t, must(t)(other.TryLock(ctx)))
	})
}

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
			_ = h.Driver.Release(t.Context(), &driver.Release{Key: l.m.key, ID: l.g.id})
			time.Sleep(defaultLease)
		},
		"the read is gone": func(t *testing.T, _ *Client, h *hooks, l *Lease) {
			_ = h.Driver.Release(t.Context(), &driver.Release{Key: l.m.key, ID: l.pair.g.id})
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
				up := must(t)(m.ULock(ctx))
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
				if len(c.grants) != 0 {
					t.Errorf("%d grants are left", len(c.grants))
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
				up := must(t)(m.ULock(ctx))
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
			t.Errorf("after the downgrade: shared %v, token %d, want %d; %v", isShared(t, l), l.Token(), token, work.Err())
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
		wantErr(t, "Downgrade", l.Downgrade(bounded), ErrUnavailable)
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

func TestDowngrade_OfAWriteThatHadBeenLost_SaysSo(t *testing.T) {
	for name, upgraded := range map[string]bool{"plain": false, "upgraded": true} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
				l := must(t)(m.ULock(ctx))
				if upgraded {
					if err := l.Upgrade(ctx); err != nil {
						t.Fatal(err)
					}
				} else {
					mustUnlock(t, l)
					l = must(t)(m.Lock(ctx))
				}
				_ = h.Driver.Release(ctx, &driver.Release{Key: l.m.key, ID: l.g.id})
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
		for _, l := range []*Lease{mustLock(t, t.Context(), c, "x"), must(t)(c.Semaphore("x", 2, nil).Acquire(t.Context(), 1))} {
			wantErr(t, "Upgrade", l.Upgrade(t.Context()), ErrUnsupported)
			wantErr(t, "Downgrade", l.Downgrade(t.Context()), ErrUnsupported)
			mustUnlock(t, l)
		}
	})
}

func TestRWMutex_GoroutinesOfOneOwner_DoNotWaitForEachOther(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		m, other := c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		ctx := mustLock(t, t.Context(), c, "another").Context(t.Context())
		blocks := must(t)(other.Lock(t.Context()))
		write := later(func() (*Lease, error) { return m.Lock(ctx) })
		synctest.Wait()
		write2 := later(func() (*Lease, error) { return m.Lock(ctx) })
		synctest.Wait()
		read := later(func() (*Lease, error) { return m.RLock(ctx) })
		synctest.Wait()
		mustUnlock(t, blocks)
		mustUnlock(t, must(t)((<-read).lease, nil))
		mustUnlock(t, must(t)((<-write).lease, nil))
		mustUnlock(t, must(t)((<-write2).lease, nil))

		blocks = must(t)(other.Lock(t.Context()))
		read = later(func() (*Lease, error) { return m.RLock(ctx) })
		synctest.Wait()
		write = later(func() (*Lease, error) { return m.Lock(ctx) })
		synctest.Wait()
		mustUnlock(t, blocks)
		mustUnlock(t, must(t)((<-read).lease, nil))
		if got := <-write; got.err == nil { // the read may have ended before it asked again
			mustUnlock(t, got.lease)
		} else {
			wantErr(t, "a write beside a read", got.err, ErrDeadlock)
		}
	})
}

func TestRWMutex_ACrashedReader_FreesOnlyItsOwnHold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx := t.Context()
		dead := newHooks(h.Peer())
		crashing := mustNew(t, dead, &Options{CloseTimeout: time.Nanosecond})
		on(dead, &dead.renew, noRenewals)
		on(dead, &dead.release, func(ctx context.Context, _ *driver.Release) error {
			return &UnavailableError{Err: errors.New("crashed")}
		})
		must(t)(crashing.RWMutex("x", nil).RLock(ctx))
		read := must(t)(c.RWMutex("x", nil).RLock(ctx))
		write := later(func() (*Lease, error) { return peer(t, h, nil).RWMutex("x", nil).Lock(ctx) })
		_ = crashing.Close()
		time.Sleep(2 * defaultLease)
		stillWaits(t, write, "beside the living reader")
		if read.Err() != nil {
			t.Errorf("the living reader: %v", read.Err())
		}
		mustUnlock(t, read)
		mustUnlock(t, must(t)((<-write).lease, nil))
		_ = dead.Driver.Close()
	})
}

func TestRWMutex_AfterALoss_TheOwnerIsToldUntilItUnlocks(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		m := c.RWMutex("x", nil)
		write := must(t)(m.Lock(t.Context()))
		ctx := context.WithoutCancel(write.Context(t.Context()))
		if err := c.Break(t.Context(), KindRWMutex, "x", write.Token()); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		_, err := m.RLock(ctx)
		wantLost(t, err, LostBroken)
		wantErr(t, "Unlock", write.Unlock(ctx), ErrLost)
		mustUnlock(t, must(t)(m.RLock(ctx)))
	})
}

func TestRWMutex_WhenTheEngineSaysThatTheWriteIsGone_AReadBesideItLosesIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		m := c.RWMutex("x", nil)
		write := must(t)(m.Lock(t.Context()))
		ctx := context.WithoutCancel(write.Context(t.Context()))
		_ = h.Driver.Release(t.Context(), &driver.Release{Key: write.m.key, ID: write.g.id})
		_, err := m.RLock(ctx)
		wantErr(t, "RLock", err, ErrLost)
		wantErr(t, "the write", write.Err(), ErrLost)
	})
}

func TestRWMutex_Close_EndsWaitsAndHolds(t *testing.T) {
	var released int
	opts := &Options{Observer: &Observer{Released: func(Event) { released++ }}}
	bubble(t, opts, func(t *testing.T, c *Client, h *hooks) {
		ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		up := must(t)(m.ULock(ctx))
		if err := up.Upgrade(ctx); err != nil {
			t.Fatal(err)
		}
		second := must(t)(c.RWMutex("y", nil).ULock(ctx))
		blocks := must(t)(peer(t, h, nil).RWMutex("y", nil).RLock(ctx))
		upgraded := upgradeLater(ctx, second)
		waits := later(func() (*Lease, error) { return m.RLock(ctx) })
		synctest.Wait()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		wantErr(t, "a wait", (<-waits).err, ErrClosed)
		wantErr(t, "an upgrade", <-upgraded, ErrClosed)
		wantErr(t, "the hold", up.Err(), ErrReleased)
		wantErr(t, "a call", second.Upgrade(ctx), ErrReleased)
		_, err := m.TryRLock(ctx)
		wantErr(t, "a call", err, ErrClosed)
		mustUnlock(t, must(t)(other.TryLock(ctx)))
		mustUnlock(t, blocks)
		if released != 2 {
			t.Errorf("the observer was told of %d releases, want 2", released)
		}
	})
}

func TestRWMutex_Inspection_ShowsReadersAndWriters(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, m := t.Context(), c.RWMutex("x", &LockOptions{Label: "report"})
		read, up := must(t)(m.RLock(ctx)), must(t)(m.ULock(ctx))
		write := later(func() (*Lease, error) { return m.Lock(ctx) })
		synctest.Wait()
		for info, err := range c.Locks(ctx, "x") {
			if err != nil || info.Kind != KindRWMutex || len(info.Holders) != 2 || len(info.Waiters) != 1 {
				t.Fatalf("%+v, %v", info, err)
			}
			if h := info.Holders[0]; !h.Shared || h.Token != read.Token() || h.Label != "report" || info.Waiters[0].Shared {
				t.Errorf("%+v", info)
			}
		}
		mustUnlock(t, read)
		mustUnlock(t, up)
		mustUnlock(t, must(t)((<-write).lease, nil))
	})
}

// plainRW hides Convert.
type plainRW struct {
	driver.Driver
	driver.Renewer
}

func TestRWMutex_OnAnEngineThatCannotConvert(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c := mustNew(t, plainRW{h, h}, nil)
		defer c.Close()
		ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		_, err := m.ULock(ctx)
		wantErr(t, "ULock", err, ErrUnsupported)
		write := must(t)(m.Lock(ctx))
		wantErr(t, "Downgrade", write.Downgrade(ctx), ErrUnsupported)
		read := must(t)(m.RLock(write.Context(ctx)))
		if !isShared(t, read) || isShared(t, write) {
			t.Errorf("shared: %v, %v", isShared(t, read), isShared(t, write))
		}
		mustUnlock(t, write)
		_, err = other.TryRLock(ctx)
		wantErr(t, "a reader while the read of the writer goes on", err, ErrHeld)
		wantErr(t, "Upgrade", read.Upgrade(ctx), ErrDeadlock)
		mustUnlock(t, read)
		mustUnlock(t, must(t)(other.TryLock(ctx)))
	})
}

func TestKindsThatAnEngineHasNot_AreRefusedWithTheReason(t *testing.T) {
	c := mustNew(t, &instantly{}, nil)
	defer c.Close()
	_, err := c.RWMutex("x", nil).RLock(t.Context())
	wantErr(t, "RLock", err, ErrUnsupported)
	if want := `interlock: lock "x": not supported by this engine (nothing: it has no locks of kind rw, only of [mutex])`; err.Error() != want {
		t.Errorf("it says %q, want %q", err, want)
	}
	_, err = c.Semaphore("x", 1, nil).Acquire(t.Context(), 1)
	wantErr(t, "Acquire", err, ErrUnsupported)
	if _, err := c.RWMutex("", nil).Lock(t.Context()); err == nil {
		t.Error("an empty name is accepted")
	}
	if _, err := c.RWMutex("x", &LockOptions{Lease: time.Nanosecond}).Lock(t.Context()); err == nil {
		t.Error("a bad option is accepted")
	}
}

func TestUpgraded_Abandoned_IsLeftToRunOutAsAWhole(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		up := must(t)(m.ULock(ctx))
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
		up := must(t)(m.ULock(ctx))
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
		ctx, m, other := t.Context(), c.RWMutex("x", &LockOptions{MinHold: time.Minute}), peer(t, h, nil).RWMutex("x", nil)
		start := time.Now()
		up := must(t)(m.ULock(ctx))
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

func TestUpgraded_WithLossDelay_IsClosedAfterALoss(t *testing.T) {
	for name, whose := range map[string]func(l *Lease) *grant{
		"the write": func(l *Lease) *grant { return l.g },
		"the read":  func(l *Lease) *grant { return l.pair.g },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				ctx, m := t.Context(), c.RWMutex("x", &LockOptions{LossDelay: time.Hour})
				other := peer(t, h, nil).RWMutex("x", nil)
				up := must(t)(m.ULock(ctx))
				if err := up.Upgrade(ctx); err != nil {
					t.Fatal(err)
				}
				c.lock()
				c.end(whose(up), LostUnconfirmed) // as at the end of its trust
				c.unlock()
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
