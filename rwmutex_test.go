package interlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
)

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
		if h.renewals.Load() != 0 || len(c.in().EngineHolds) != 0 || len(c.in().LinesOfOne) != 0 {
			t.Errorf(
				"left: %d renewals, %d grants, %d waiters",
				h.renewals.Load(),
				len(c.in().EngineHolds),
				len(c.in().LinesOfOne),
			)
		}
	})
}

// A grant looks for other waiters of its owner only if the owner has some that count (owner.waits). The wait of a new
// owner does not count, or each grant to a crowd would search the whole crowd.
func TestRWMutex_OnlyWhoMayHaveOthersBesideItself_IsLookedForAmongAllWhoWait(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		m, base := c.RWMutex("x", nil), mustLock(t, t.Context(), c, "base")
		write := must(t)(m.Lock(t.Context()))
		fresh := later(func() (*Lease, error) { return m.RLock(t.Context()) })
		shared := later(func() (*Lease, error) { return m.RLock(base.Context(t.Context())) })
		synctest.Wait()
		counted := make(map[bool]int32)
		c.in().Lock()
		for w := range c.in().LinesOfOne {
			counted[w.Hold.Owner == base.hold().Owner] += w.Hold.Owner.Waits.Load()
		}
		c.in().Unlock()
		if counted[false] != 0 || counted[true] != 1 {
			t.Errorf("waits that count: %d of a new owner and %d of one that others share, want 0 and 1",
				counted[false], counted[true])
		}
		mustUnlock(t, write)
		mustUnlock(t, must(t)((<-fresh).lease, nil))
		mustUnlock(t, must(t)((<-shared).lease, nil))
		mustUnlock(t, base)
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
		second, up := must(t)(m.TryRLock(ctxRead)), must(t)(m.UpgradeableRLock(ctxRead))
		if again.Token() != write.Token() || read.Token() != write.Token() || isShared(t, again) ||
			!isShared(t, read) || !isShared(t, up) {
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
		_ = h.Driver.Release(t.Context(), &driver.Release{Key: write.hold().Lock.Key(), ID: write.hold().Engine.ID})
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
		up := must(t)(m.UpgradeableRLock(ctx))
		if err := up.Upgrade(ctx); err != nil {
			t.Fatal(err)
		}
		second := must(t)(c.RWMutex("y", nil).UpgradeableRLock(ctx))
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
		read, up := must(t)(m.RLock(ctx)), must(t)(m.UpgradeableRLock(ctx))
		write := later(func() (*Lease, error) { return m.Lock(ctx) })
		synctest.Wait()
		for info, err := range c.List(ctx, "x") {
			if err != nil || info.Kind != KindRWMutex || len(info.Holders) != 2 || len(info.Waiters) != 1 {
				t.Fatalf("%+v, %v", info, err)
			}
			if h := info.Holders[0]; !h.Shared || h.Token != read.Token() || h.Label != "report" ||
				info.Waiters[0].Shared {
				t.Errorf("%+v", info)
			}
		}
		mustUnlock(t, read)
		mustUnlock(t, up)
		mustUnlock(t, must(t)((<-write).lease, nil))
	})
}

// plainRW is an engine with read/write locks and without Convert.
type plainRW struct {
	driver.Driver
	driver.Renewer
}

func TestRWMutex_OnAnEngineThatCannotConvert(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c := mustNew(t, plainRW{h, h}, nil)
		defer c.Close()
		ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
		_, err := m.UpgradeableRLock(ctx)
		wantErr(t, "UpgradeableRLock", err, ErrUnsupported)
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
	want := `interlock: lock "x": not supported by this engine (nothing: it has no locks of kind rw, only of [mutex])`
	if err.Error() != want {
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

// A goroutine may have looked before another one of its owner got in. It is answered beside that hold, and does not
// wait for it.
func TestRWMutex_AnOwner_NeverWaitsForItself(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		rw := c.RWMutex("a", nil)
		l := must(t)(rw.Lock(t.Context()))
		m := &rw.modes[driver.Exclusive]
		ctx, cancel := context.WithTimeout(t.Context(), second) // who waits after all is told so
		defer cancel()
		if _, err := c.in().
			AskAlone(ctx, shell.NewWaiter(m, l.hold().Owner, c.in().NewCall()), false); !errors.Is(
			err,
			core.ErrAgain,
		) {
			t.Errorf("got %v", err)
		}
		beside := must(t)(handOver(shell.AttemptDirect(t.Context(), m, l.hold().Owner, false, c.in().NewCall())))
		mustUnlock(t, beside)
		mustUnlock(t, l)
	})
}
