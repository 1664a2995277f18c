package interlock

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/internal/trust"
	"github.com/interlock-go/interlock/memlock"
)

// holdUp holds up renewals of the hold with that id from now on. asked is closed when the first comes. They go on when
// the test closes goOn.
func holdUp(h *hooks, id string) (asked <-chan struct{}, goOn chan<- struct{}) {
	first, wait := make(chan struct{}), make(chan struct{})
	var once sync.Once
	on(h, &h.renew, func(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
		if slices.ContainsFunc(batch, func(r driver.Renewal) bool { return r.ID == id }) {
			once.Do(func() { close(first) })
			select {
			case <-wait:
			case <-ctx.Done():
			}
		}
		h.Driver.Renew(ctx, batch, done)
	})
	return first, wait
}

func TestExtend_WhileTheHoldChangesItsMode_ExtendsWhatItHasThen(t *testing.T) {
	for name, upgraded := range map[string]bool{"upgraded": true, "plain": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				ctx, m := t.Context(), c.RWMutex("x", nil)
				l := takeWrite(t, m, upgraded)
				asked, goOn := holdUp(h, l.hold().Engine.ID)
				start, said := time.Now(), make(chan error, 1)
				go func() { said <- l.Extend(ctx, time.Hour) }()
				<-asked
				if err := l.Downgrade(ctx); err != nil {
					t.Fatal(err)
				}
				close(goOn)
				if err := <-said; err != nil {
					t.Fatalf("Extend: %v, but the hold says %v", err, l.Err())
				}
				if end := l.Deadline(); end.Before(start.Add(time.Hour)) {
					t.Errorf("the hold lasts for %v", end.Sub(start))
				}
				mustUnlock(t, l)
			})
		})
	}
}

func TestUpgraded_WhoEntersAgainWhileItIsLost_HearsOfTheLoss(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, m := t.Context(), c.RWMutex("x", nil)
		up := must(t)(m.UpgradeableRLock(ctx))
		work := context.WithoutCancel(up.Context(ctx))
		again := must(t)(m.UpgradeableRLock(work))
		if err := up.Upgrade(ctx); err != nil {
			t.Fatal(err)
		}
		asked, goOn := holdUp(h, again.hold().Engine.ID)
		third := later(func() (*Lease, error) { return m.UpgradeableRLock(work) })
		<-asked
		if err := c.Break(ctx, KindRWMutex, "x", up.Token()); err != nil {
			t.Fatal(err)
		}
		close(goOn)
		got := <-third
		wantErr(t, "a further UpgradeableRLock", got.err, ErrLost)
		wantErr(t, "the upgraded hold", up.Unlock(ctx), ErrLost)
		wantErr(t, "the other", again.Unlock(ctx), ErrLost)
	})
}

func TestUpgraded_WhoseReadHasEnded_SaysSoAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := memlock.New(nil)
		defer d.Close()
		var suspended atomic.Int64
		opts, _ := (*Options)(nil).withDefaults()
		inner, err := shell.NewClient(
			newHooks(d),
			opts.config(),
			func() time.Duration { return time.Duration(suspended.Load()) },
		)
		if err != nil {
			t.Fatal(err)
		}
		c := publicOf(inner)
		defer c.Close()
		ctx := t.Context()
		up := must(t)(c.RWMutex("x", nil).UpgradeableRLock(ctx))
		time.Sleep(9 * second) // virtual, so the write has more time left than the read
		if err := up.Upgrade(ctx); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * trust.LookEvery)
		suspended.Store(int64(25 * second))
		if _, ok := up.Stamp(); ok {
			t.Error("it has a stamp although the read below it has ended")
		}
		if since := time.Since(up.Deadline()); since < 4*second {
			t.Errorf("trusted until %v ago, when it is noticed after a suspension that outlasted the read by some 5 s",
				since)
		}
		wantLost(t, up.Err(), LostSuspended)
	})
}

// Two holds share a write, and the one that has ended had a MinHold. A downgrade of the other must not end that.
func TestDowngrade_KeepsTheRestThatAnotherHoldHasAskedFor(t *testing.T) {
	for name, upgraded := range map[string]bool{"upgraded": true, "plain": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
				l, end := takeWrite(t, m, upgraded), time.Now().Add(20*second)
				mustUnlock(t, must(t)(c.RWMutex("x", &LockOptions{MinHold: 20 * second}).Lock(l.Context(ctx))))
				if err := l.Downgrade(ctx); err != nil {
					t.Fatal(err)
				}
				// A MinHold goes on with the read after a downgrade, so other readers get in.
				mustUnlock(t, must(t)(other.TryRLock(ctx)))
				mustUnlock(t, l)
				mustUnlock(t, must(t)(other.Lock(ctx)))
				wantAt(t, end, "a writer after a MinHold")

				l = takeWrite(t, m, upgraded)
				lost := must(t)(c.RWMutex("x", &LockOptions{
					MaxHold:   second,
					LockDelay: 20 * second,
				}).Lock(l.Context(ctx)))
				<-lost.Lost()
				end = time.Now().Add(20 * second)
				if err := l.Downgrade(ctx); err != nil {
					t.Fatal(err)
				}
				mustUnlock(t, must(t)(other.RLock(ctx)))
				wantAt(t, end, "a reader after a loss")
				if l.Err() != nil || !isShared(t, l) {
					t.Errorf("the hold that was downgraded: %v", l.Err())
				}
				mustUnlock(t, l)
				mustUnlock(t, must(t)(other.TryLock(ctx)))
			})
		})
	}
}

func TestDowngrade_WhoseReleaseIsNotHeardForALease_IsNoLoss(t *testing.T) {
	for name, upgraded := range map[string]bool{"upgraded": true, "plain": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				ctx, m, other := t.Context(), c.RWMutex("x", nil), peer(t, h, nil).RWMutex("x", nil)
				l := takeWrite(t, m, upgraded)
				on(h, &h.release, h.hung)
				said := make(chan error, 1)
				go func() { said <- l.Downgrade(ctx) }()
				mustUnlock(t, must(t)(other.RLock(ctx))) // when the write has run out
				on(h, &h.release, h.Driver.Release)
				if err := <-said; err != nil {
					t.Errorf("Downgrade: %v", err)
				}
				if l.Err() != nil || !isShared(t, l) {
					t.Fatalf("the hold says %v", l.Err())
				}
				_, err := other.TryLock(ctx)
				wantErr(t, "a writer", err, ErrHeld)
				mustUnlock(t, l)
			})
		})
	}
}

func TestExtend_OfAFixedLease_OutlastsAChangeOfMode(t *testing.T) {
	for name, upgraded := range map[string]bool{"upgraded": true, "plain": false} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				ctx, m := t.Context(), c.RWMutex("x", &LockOptions{Lease: time.Minute, NoRenew: true})
				other := peer(t, h, nil).RWMutex("x", nil)
				l := must(t)(m.UpgradeableRLock(ctx))
				if !upgraded {
					mustUnlock(t, l)
					l = must(t)(m.Lock(ctx))
				}
				end := time.Now().Add(time.Hour)
				if err := l.Extend(ctx, time.Hour); err != nil {
					t.Fatal(err)
				}
				if upgraded {
					if err := l.Upgrade(ctx); err != nil {
						t.Fatal(err)
					}
				}
				time.Sleep(10 * time.Minute) // virtual
				if err := l.Downgrade(ctx); err != nil {
					t.Fatal(err)
				}
				time.Sleep(time.Until(end.Add(-second))) // virtual
				if l.Err() != nil {
					t.Fatalf("it was to last for an hour: %v", l.Err())
				}
				_, err := other.TryLock(ctx)
				wantErr(t, "a writer", err, ErrHeld)
				<-l.Lost()
				wantLost(t, l.Err(), LostExpired)
				wantAt(t, end, "its end")
				mustUnlock(t, must(t)(other.Lock(ctx)))
			})
		})
	}
}

// takeWrite takes m for writing, by an upgrade or not.
func takeWrite(t *testing.T, m *RWMutex, upgraded bool) *Lease {
	t.Helper()
	if !upgraded {
		return must(t)(m.Lock(t.Context()))
	}
	l := must(t)(m.UpgradeableRLock(t.Context()))
	if err := l.Upgrade(t.Context()); err != nil {
		t.Fatal(err)
	}
	return l
}
