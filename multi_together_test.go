package interlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/memlock"
)

var abc = []string{"a", "b", "c"}

func TestMulti_IsOneRequestWhereTheEngineCan(t *testing.T) {
	var d diary
	bubble(t, &Options{Observer: d.observer()}, func(t *testing.T, c *Client, h *hooks) {
		l := mustMulti(t, c.Multi([]string{"h", "g", "f", "e", "d", "c", "b", "a"}, nil))
		if n, apart := h.bundles.Load(), h.acquires.Load(); n != 1 || apart != 0 {
			t.Errorf("%d requests for all and %d for single locks, want 1 and 0", n, apart)
		}
		names := ""
		for _, lease := range l.Leases() {
			names += lease.Name()
			if s, ok := lease.Stamp(); !ok || s.Token == 0 || s.Nonce == "" || lease.Owner() != l.Leases()[0].Owner() {
				t.Errorf("%q has the stamp %v, %v and the owner %s", lease.Name(), s, ok, lease.Owner())
			}
		}
		if names != "hgfedcba" {
			t.Errorf("leases of %q", names)
		}
		if told := d.take(); len(told) != 8 || told[0] != "acquired a/other waited 0s local false err false" {
			t.Errorf("the Observer was told %q", told)
		}
		mustUnlock(t, mustLock(t, l.Context(t.Context()), c, "b")) // re-enters
		later := lockLater(t.Context(), c, "c")
		synctest.Wait()
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		passed := (<-later).lease
		if e := shell.HoldFactsNow(passed.hold()); !e.Local {
			t.Error("a lock of a Multi does not pass on inside the process")
		}
		mustUnlock(t, passed)
		wantFree(t, peer(t, h, nil), "a", "b", "c", "d", "e", "f", "g", "h")
	})
}

func TestMulti_ThatIsRefusedInOneStep_HasLeftNothing(t *testing.T) {
	var d diary
	bubble(t, &Options{Observer: d.observer()}, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		b := mustLock(t, t.Context(), other, "b")
		var held *HeldError
		if _, err := c.Multi(abc, nil).TryLock(t.Context()); !errors.As(err, &held) || held.Name != "b" ||
			held.Token != b.Token() {
			t.Errorf("got %v", err)
		}
		if h.bundles.Load() != 1 || h.acquires.Load() != 0 || h.releases.Load() != 0 {
			t.Errorf("%d, %d, %d requests", h.bundles.Load(), h.acquires.Load(), h.releases.Load())
		}
		if told := d.take(); !slices.Equal(told, []string{"failed b/other waited 0s local false err true"}) {
			t.Errorf("the Observer was told %q", told)
		}
		for info, err := range other.List(t.Context(), "") {
			if err != nil || info.Name != "b" || len(info.Holders) != 1 || len(info.Waiters) != 0 {
				t.Errorf("left behind: %+v, %v", info, err)
			}
		}
		mustUnlock(t, b)
	})
}

// During the wait the Multi holds the locks before the one that it waits for, and has asked for nothing behind it.
func TestMulti_ThatIsRefusedInOneStep_WaitsInOrder(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		b := mustLock(t, t.Context(), other, "b")
		got := make(chan *MultiLease, 1)
		go func() { got <- mustMulti(t, c.Multi([]string{"c", "b", "a"}, nil)) }()
		synctest.Wait()
		wantFree(t, other, "c")
		if _, err := other.TryLock(t.Context(), "a"); !errors.Is(err, ErrHeld) {
			t.Errorf("a is to be held while it waits for b: %v", err)
		}
		mustUnlock(t, b)
		l := <-got
		if n := h.bundles.Load(); n != 1 {
			t.Errorf("asked %d times for all", n)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		wantFree(t, other, abc...)
	})
}

func TestMulti_AsksNobodyForWhatThisProcessHolds(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		b := mustLock(t, t.Context(), c, "b")
		var held *HeldError
		_, err := c.Multi(abc, nil).TryLock(t.Context())
		if !errors.As(err, &held) || held.Name != "b" || held.Token != b.Token() {
			t.Errorf("got %v", err)
		}
		if h.bundles.Load() != 0 || h.acquires.Load() != 1 {
			t.Errorf("%d and %d requests", h.bundles.Load(), h.acquires.Load())
		}
		l, err := c.Multi(abc, nil).TryLock(b.Context(t.Context())) // its own owner's
		if err != nil {
			t.Fatal(err)
		}
		if l.Leases()[1].Token() != b.Token() || h.bundles.Load() != 0 {
			t.Errorf("b was not re-entered, or asked for with the others: %d requests for all", h.bundles.Load())
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		mustUnlock(t, b)
		wantFree(t, peer(t, h, nil), abc...)
	})
}

func TestMulti_OverSeveralClients_OrOfOneName_AsksForEachByItself(t *testing.T) {
	bubble(t, &Options{Store: "one"}, func(t *testing.T, c *Client, h *hooks) {
		d := memlock.New(nil)
		defer d.Close()
		far := mustNew(t, newHooks(d), &Options{Store: "two"})
		defer far.Close()
		for _, m := range []*Multi{MultiOf(c.Mutex("a", nil), far.Mutex("b", nil)), c.Multi([]string{"a", "a"}, nil)} {
			if err := mustMulti(t, m).Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
		if n := h.bundles.Load(); n != 0 {
			t.Errorf("asked %d times for all", n)
		}
	})
}

func TestMulti_OfANamedOwner_ReentersInOneStep(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx := WithOwner(t.Context(), "order-7")
		far := peer(t, h, nil)
		b := mustLock(t, ctx, far, "b") // as in another process
		l, err := c.Multi(abc, nil).Lock(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if h.bundles.Load() != 1 || l.Leases()[1].Token() != b.Token() {
			t.Errorf("%d requests for all; the tokens are %d and %d", h.bundles.Load(), l.Leases()[1].Token(),
				b.Token())
		}
		mustUnlock(t, b)
		if _, err := far.TryLock(t.Context(), "b"); !errors.Is(err, ErrHeld) {
			t.Errorf("b is to be held: %v", err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		wantFree(t, far, abc...)
	})
}

// The answer is lost in three ways: the connection breaks, the context ends, and the client is closed.
func TestMulti_WhoseAnswerIsLost_LeavesNothing(t *testing.T) {
	for name, row := range map[string]struct {
		rule  faulty.Rule
		close bool
		want  error
	}{
		"TheRequestWasLost":  {rule: faulty.Rule{Drop: faulty.Request}, want: ErrUnavailable},
		"TheReplyWasLost":    {rule: faulty.Rule{Drop: faulty.Reply}, want: ErrUnavailable},
		"ACopyComesLate":     {rule: faulty.Rule{Drop: faulty.Reply, Copy: 5 * second}, want: ErrUnavailable},
		"TheContextEnds":     {rule: faulty.Rule{Drop: faulty.Reply, Hang: true}, want: context.DeadlineExceeded},
		"TheClientIsClosed":  {rule: faulty.Rule{Drop: faulty.Reply, Hang: true}, close: true, want: ErrClosed},
		"TheServerHasNotGot": {rule: faulty.Rule{Drop: faulty.Request, Hang: true}, want: context.DeadlineExceeded},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := memlock.New(nil)
				row.rule.Op = faulty.AcquireAll
				d, control := faulty.Wrap(store.Peer(), 1, row.rule)
				c := mustNew(t, d, nil)
				defer func() { _, _ = c.Close(), d.Close() }()
				other := mustNew(t, store, nil)
				defer func() { _, _ = other.Close(), store.Close() }()
				ctx, cancel := context.WithTimeout(t.Context(), second)
				defer cancel()
				if row.close {
					time.AfterFunc(second/2, func() { _ = c.Close() })
				}
				start := time.Now()
				_, err := c.Multi(abc, nil).Lock(ctx)
				if !errors.Is(err, row.want) || errors.Is(err, ErrHeld) {
					t.Errorf("got %v, want %v", err, row.want)
				}
				if took := time.Since(start); took > second+50*time.Millisecond {
					t.Errorf("it took %v", took)
				}
				if n := control.Calls(faulty.AcquireAll); n != 1 {
					t.Errorf("asked %d times", n)
				}
				synctest.Wait()
				wantFree(t, other, abc...)
				time.Sleep(10 * second) // virtual: copies have come
				wantFree(t, other, abc...)
			})
		})
	}
}

// One of the locks is over before the client has taken the grant in: an operator broke it, or the process stood still.
func TestMulti_OfWhichOneEndedBeforeItWasTakenIn_IsTakenAnew(t *testing.T) {
	for name, spoil := range map[string]func(h *hooks, rs []*driver.Request, gs []driver.Grant) error{
		"Broken": func(h *hooks, rs []*driver.Request, gs []driver.Grant) error {
			return h.Break(context.Background(), rs[1].Key, gs[1].Token)
		},
		"TooLate": func(_ *hooks, rs []*driver.Request, gs []driver.Grant) error {
			gs[2].Sent = gs[2].Sent.Add(-rs[2].Lease)
			return nil
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				on(h, &h.acquireAll, func(ctx context.Context, rs []*driver.Request) ([]driver.Grant, error) {
					gs, err := h.Driver.AcquireAll(ctx, rs)
					return gs, errors.Join(err, spoil(h, rs, gs))
				})
				l := mustMulti(t, c.Multi(abc, nil))
				if err := l.Err(); err != nil {
					t.Error(err)
				}
				if err := l.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
				synctest.Wait()
				wantFree(t, peer(t, h, nil), abc...)
			})
		})
	}
}

func TestMulti_OfAnOwnerThatHasLostOne_SaysSo(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		b := mustLock(t, t.Context(), c, "b")
		within := context.WithoutCancel(b.Context(t.Context()))
		if err := peer(t, h, nil).Break(t.Context(), KindMutex, "b", b.Token()); err != nil {
			t.Fatal(err)
		}
		_, err := c.Multi(abc, nil).Lock(within)
		wantLost(t, err, LostBroken)
		wantLost(t, b.Unlock(t.Context()), LostBroken)
		synctest.Wait()
		wantFree(t, c, abc...)
	})
}

// Another goroutine of the same owner asks for one of the locks at the same instant, just before the Multi and just
// after it.
func TestMulti_MeetsAnotherGoroutineOfItsOwner(t *testing.T) {
	t.Run("Before", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
			within := mustLock(t, t.Context(), c, "x").Context(t.Context())
			var b *Lease
			on(h, &h.acquireAll, func(ctx context.Context, rs []*driver.Request) ([]driver.Grant, error) {
				b = mustLock(t, within, c, "b")
				return h.Driver.AcquireAll(ctx, rs)
			})
			l, err := c.Multi(abc, nil).TryLock(within)
			if err != nil {
				t.Fatal(err)
			}
			if l.Leases()[1].Token() != b.Token() {
				t.Error("b was not re-entered")
			}
		})
	})
	t.Run("After", func(t *testing.T) {
		bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
			within := mustLock(t, t.Context(), c, "x").Context(t.Context())
			var later <-chan outcome
			on(h, &h.acquireAll, func(ctx context.Context, rs []*driver.Request) ([]driver.Grant, error) {
				gs, err := h.Driver.AcquireAll(ctx, rs)
				later = lockLater(within, c, "b")
				synctest.Wait() // it stands in the line, behind its own owner
				return gs, err
			})
			l, err := c.Multi(abc, nil).Lock(within)
			if err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
			if len(later) == 0 {
				t.Fatal("the other goroutine waits for its own owner")
			}
			if b := (<-later).lease; b.Token() != l.Leases()[1].Token() {
				t.Errorf("tokens %d and %d", b.Token(), l.Leases()[1].Token())
			}
		})
	})
}

func TestMulti_GrantedToAClientThatIsClosed_IsGivenBack(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		closed := make(chan error, 1)
		on(h, &h.acquireAll, func(ctx context.Context, rs []*driver.Request) ([]driver.Grant, error) {
			go func() { closed <- c.Close() }()
			<-ctx.Done()
			return h.Driver.AcquireAll(context.WithoutCancel(ctx), rs)
		})
		if _, err := c.Multi(abc, nil).Lock(t.Context()); !errors.Is(err, ErrClosed) {
			t.Errorf("got %v", err)
		}
		if err := <-closed; err != nil {
			t.Error(err)
		}
		wantFree(t, peer(t, h, nil), abc...)
	})
}

// The client takes many grants in bit by bit, so that other calls get its mutex in between. If one turns out to be
// over, those taken in before it are given back.
func TestMulti_OfManyNames_OfWhichTheLastIsBroken_IsTakenAnew_WhileOthersHaveTheirTurn(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		names := make([]string, 5*core.AtOnce)
		for i := range names {
			names[i] = fmt.Sprintf("%04d", i)
		}
		on(h, &h.acquireAll, func(ctx context.Context, rs []*driver.Request) ([]driver.Grant, error) {
			gs, err := h.Driver.AcquireAll(ctx, rs)
			last := len(rs) - 1
			return gs, errors.Join(err, h.Break(ctx, rs[last].Key, gs[last].Token))
		})
		l := mustMulti(t, c.Multi(names, nil))
		if len(l.Leases()) != len(names) || l.Err() != nil {
			t.Errorf("%d holds, %v", len(l.Leases()), l.Err())
		}
		for i, lease := range l.Leases() {
			if lease.Name() != names[i] {
				t.Fatalf("hold %d is of %q", i, lease.Name())
			}
		}
		again, err := c.Multi([]string{names[3], "0000+"}, nil).TryLock(l.Context(t.Context()))
		if err != nil {
			t.Fatalf("an owner of many, again: %v", err)
		}
		if err := again.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		wantFree(t, peer(t, h, nil), names[0], names[len(names)-1])
	})
}

// TestMulti_InOppositeOrders_IsNeverPartial runs two clients in real time, for the race detector.
func TestMulti_InOppositeOrders_IsNeverPartial(t *testing.T) {
	d := memlock.New(nil)
	defer d.Close()
	one, two := mustNew(t, d.Peer(), nil), mustNew(t, newHooks(d.Peer()), nil)
	defer func() { _, _ = one.Close(), two.Close() }()
	oppositeOrders(t, one, two, 25)
	wantFree(t, one, "a", "b", "c", "d")
}

// oppositeOrders has 16 goroutines lock the same names in opposite orders, and others try them.
func oppositeOrders(t *testing.T, one, two *Client, rounds int) {
	t.Helper()
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	names := []string{"a", "b", "c", "d"}
	inside := make(map[string]*atomic.Int64)
	for _, name := range names {
		inside[name] = new(atomic.Int64)
	}
	var all sync.WaitGroup
	for n := range 16 {
		all.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(n)))
			c, names := one, slices.Clone(names)
			if n%2 == 1 {
				c = two
				slices.Reverse(names)
			}
			m := c.Multi(names, nil)
			for range rounds {
				take := m.Lock
				if random.IntN(3) == 0 {
					take = m.TryLock
				}
				l, err := take(t.Context())
				if errors.Is(err, ErrHeld) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				for _, lease := range l.Leases() {
					if others := inside[lease.Name()].Add(1); others != 1 || lease.Err() != nil {
						t.Errorf("%q: %d inside, %v", lease.Name(), others, lease.Err())
					}
				}
				if len(l.Leases()) != len(names) {
					t.Errorf("%d leases", len(l.Leases()))
				}
				for _, lease := range l.Leases() {
					inside[lease.Name()].Add(-1)
				}
				if err := l.Unlock(t.Context()); err != nil {
					t.Error(fmt.Errorf("unlock: %w", err))
				}
			}
		})
	}
	all.Wait()
}
