package interlock

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/memlock"
)

func mustMulti(t *testing.T, m *Multi) *MultiLease {
	t.Helper()
	l, err := m.Lock(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// apart refuses to take several locks in one step, so that a Multi takes them one by one.
func apart(context.Context, []*driver.Request) ([]driver.Grant, error) {
	return nil, driver.ErrUnsupported
}

// wantFree fails unless a client that shares no queue with the others can take all of the names.
func wantFree(t *testing.T, c *Client, names ...string) {
	t.Helper()
	for _, name := range names {
		l, err := c.TryLock(t.Context(), name)
		if err != nil {
			t.Fatalf("%q is not free: %v", name, err)
		}
		mustUnlock(t, l)
	}
}

func TestMulti_HasOneLeaseForEachName_InTheOrderGiven_TakenInTheirs(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		var asked []string
		on(h, &h.acquireAll, apart)
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			asked = append(asked, r.Name)
			return h.Driver.Acquire(ctx, r)
		})
		l := mustMulti(t, c.Multi([]string{"c", "a", "c", "b", "a"}, nil))
		var names []string
		for _, lease := range l.Leases() {
			names = append(names, lease.Name())
			if _, ok := lease.Stamp(); !ok || lease.Owner() != l.Leases()[0].Owner() {
				t.Errorf("%q has no stamp, or another owner", lease.Name())
			}
		}
		if got := strings.Join(names, ""); got != "cab" {
			t.Errorf("leases of %q", got)
		}
		if got := strings.Join(asked, ""); got != "abc" {
			t.Errorf("taken in the order %q", got)
		}
		mustUnlock(t, mustLock(t, l.Context(t.Context()), c, "b")) // re-enters
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context()); !errors.Is(err, ErrReleased) {
			t.Errorf("the second Unlock: %v", err)
		}
		if isClosed(l.Lost()) || !errors.Is(l.Err(), ErrReleased) {
			t.Errorf("after Unlock: lost %v, %v", isClosed(l.Lost()), l.Err())
		}
		wantFree(t, peer(t, h, nil), "a", "b", "c")
	})
}

func TestMulti_IsAllOrNothing(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		b := mustLock(t, t.Context(), other, "b")
		m := c.Multi([]string{"a", "b", "c"}, &LockOptions{MinHold: time.Hour})
		var held *HeldError
		if _, err := m.TryLock(t.Context()); !errors.As(err, &held) || held.Name != "b" {
			t.Errorf("TryLock: %v", err)
		}
		wantFree(t, other, "a", "c")
		ctx, cancel := context.WithTimeout(t.Context(), 5*second)
		defer cancel()
		if _, err := m.Lock(ctx); !errors.Is(err, context.DeadlineExceeded) || !errors.As(err, &held) ||
			held.Name != "b" {
			t.Errorf("Lock: %v", err)
		}
		synctest.Wait()
		wantFree(t, other, "a", "c")
		mustUnlock(t, b)
		l, err := c.Multi([]string{"a", "b", "c"}, nil).TryLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

func TestMulti_OneLostIsAllLost(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		l := mustMulti(t, c.Multi([]string{"a", "b", "c"}, nil))
		work := l.Context(t.Context())
		b := l.Leases()[1]
		if err := other.Break(t.Context(), KindMutex, "b", b.Token()); err != nil {
			t.Fatal(err)
		}
		if !isClosed(l.Lost()) {
			t.Error("Lost is not closed")
		}
		wantLost(t, context.Cause(work), LostBroken)
		wantLost(t, context.Cause(l.Context(t.Context())), LostBroken)
		wantLost(t, l.Err(), LostBroken)
		if _, err := other.TryLock(t.Context(), "a"); !errors.Is(err, ErrHeld) {
			t.Errorf("the others are to stay held until Unlock: %v", err)
		}
		wantLost(t, l.Unlock(t.Context()), LostBroken)
		wantFree(t, other, "a", "b", "c")
	})
}

func TestMulti_ALossWhileItWaitsEndsTheWait(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		b := mustLock(t, t.Context(), other, "b")
		start := time.Now()
		_, err := c.Multi([]string{"a", "b"}, &LockOptions{MaxHold: 5 * second}).Lock(t.Context())
		wantLost(t, err, LostExpired)
		wantAt(t, start.Add(5*second), "the error")
		synctest.Wait() // its place in the queue is given up
		mustUnlock(t, b)
		wantFree(t, other, "a", "b")
	})
}

func TestMulti_DoesNotWaitBelowWhatItsOwnerHolds(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		b := mustLock(t, t.Context(), c, "b")
		within := b.Context(t.Context())
		l, err := c.Multi([]string{"a", "b", "c"}, nil).Lock(within) // b is re-entered, a is free
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Unlock(t.Context()); err != nil {
			t.Fatal(err)
		}
		a := mustLock(t, t.Context(), other, "a")
		_, err = c.Multi([]string{"c", "a"}, nil).Lock(within)
		if !errors.Is(err, ErrDeadlock) || errors.Is(err, ErrHeld) ||
			!strings.Contains(err.Error(), `its owner holds "b"`) {
			t.Errorf("got %v", err)
		}
		later := lockLater(within, c, "a") // a plain Lock does not check the order: that is left to the caller
		synctest.Wait()
		mustUnlock(t, a)
		mustUnlock(t, (<-later).lease)
		mustUnlock(t, b)
		wantFree(t, other, "a", "b", "c")
	})
}

// A Multi waits for mutexes alone. So nothing else that its owner holds can close a cycle of waits in the order of
// names.
func TestMulti_WaitsWhateverElseItsOwnerHolds(t *testing.T) {
	for name, take := range map[string]func(ctx context.Context, c *Client) (*Lease, error){
		"a permit": func(ctx context.Context, c *Client) (*Lease, error) {
			return c.Semaphore("z", 2, nil).Acquire(ctx, 1)
		},
		"a read": func(ctx context.Context, c *Client) (*Lease, error) { return c.RWMutex("z", nil).RLock(ctx) },
		"an election": func(ctx context.Context, c *Client) (*Lease, error) {
			return c.Election("z", nil).Campaign(ctx, "me")
		},
		"a mutex": func(ctx context.Context, c *Client) (*Lease, error) { return c.Lock(ctx, "a") }, // below
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
				held := must(t)(take(t.Context(), c))
				b := mustLock(t, t.Context(), c, "b")
				out := make(chan error, 1)
				go func() {
					both, err := c.Multi([]string{"b", "c"}, nil).Lock(held.Context(t.Context()))
					if err == nil {
						err = both.Unlock(t.Context())
					}
					out <- err
				}()
				synctest.Wait()
				mustUnlock(t, b)
				if err := <-out; err != nil {
					t.Error(err)
				}
				mustUnlock(t, held)
			})
		})
	}
}

func TestMultiLease_UnlockTriesEveryOne_AndJoinsTheErrors(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustMulti(t, c.Multi([]string{"a", "b", "c", "d"}, nil))
		on(h, &h.release, func(ctx context.Context, r *driver.Release) error {
			if r.Name == "a" || r.Name == "c" {
				<-ctx.Done()
				return ctx.Err()
			}
			return h.Driver.Release(ctx, r)
		})
		ctx, cancel := context.WithTimeout(t.Context(), second)
		defer cancel()
		err := l.Unlock(ctx)
		if !errors.Is(err, ErrUnavailable) || !strings.Contains(err.Error(), `"a"`) ||
			!strings.Contains(err.Error(), `"c"`) {
			t.Errorf("got %v", err)
		}
		if ctx.Err() == nil || time.Until(mustDeadline(ctx)) < -50*time.Millisecond {
			t.Errorf("returned %v from the end of its context", time.Until(mustDeadline(ctx)))
		}
		wantFree(t, peer(t, h, nil), "b", "d")
		on(h, &h.release, h.Driver.Release)
	})
}

func mustDeadline(ctx context.Context) time.Time {
	d, _ := ctx.Deadline()
	return d
}

func TestMulti_BadInputIsReportedByTheFirstCall(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		for _, row := range []struct {
			m    *Multi
			says string
		}{
			{c.Multi(nil, nil), "no names"},
			{MultiOf(), "no names"},
			{MultiOf(c.Mutex("a", nil), nil), "is nil"},
			{c.Multi([]string{"a", ""}, nil), "is empty"},
			{c.Multi([]string{"a"}, &LockOptions{MaxHold: -1}), "MaxHold"},
			{MultiOf(c.Mutex("a", nil), other.Mutex("a", nil)), "Options.Store"},
		} {
			for _, call := range []func(context.Context) (*MultiLease, error){row.m.Lock, row.m.TryLock} {
				if _, err := call(t.Context()); err == nil || !strings.Contains(err.Error(), row.says) {
					t.Errorf("got %v, want an error that says %q", err, row.says)
				}
			}
		}
	})
}

func TestStoreOf_LeavesOutWhatIsNotTheStore(t *testing.T) {
	for a, b := range map[string]string{
		"redis://me:secret@h2,h1/0?prefix=x&replicas=1": "redis://h1,h2/0?prefix=x",
		"zk://h1/app": "zk://h1/app?session=3s",
	} {
		if storeOf(a) != storeOf(b) || strings.Contains(storeOf(a), "secret") {
			t.Errorf("%q and %q", storeOf(a), storeOf(b))
		}
	}
	for a, b := range map[string]string{
		"redis://h1": "redis://h2", "redis://h1?prefix=a": "redis://h1?prefix=b",
		"zk://h1/a": "zk://h1/b",
	} {
		if storeOf(a) == storeOf(b) {
			t.Errorf("%q and %q are both %q", a, b, storeOf(a))
		}
	}
}

// TestMulti_InRandomHistories has owners take random sets of locks of two stores over four clients, with random time
// limits and tries. No two are inside together, all end, and in the end nothing is held.
func TestMulti_InRandomHistories(t *testing.T) {
	for _, seed := range []uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()} {
		t.Run(fmt.Sprint("seed=", seed), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				var clients [2][2]*Client // of two stores
				for store := range clients {
					d := memlock.New(nil)
					defer d.Close()
					for i := range clients[store] {
						h := newHooks(d.Peer())
						if i == 1 { // clients that can take all in one step, and others
							h.acquireAll = apart
						}
						c := mustNew(t, h, &Options{Store: fmt.Sprint("store ", store)})
						clients[store][i] = c
						defer c.Close()
					}
				}
				var inside sync.Map // store and name
				var all sync.WaitGroup
				for n := range uint64(8) {
					random := rand.New(rand.NewPCG(seed, n))
					all.Go(func() {
						for range 30 {
							multiOnce(t, random, clients, &inside)
						}
					})
				}
				all.Wait()
				synctest.Wait()
				for store := range clients {
					wantFree(t, clients[store][0], "a", "b", "c", "d")
				}
			})
		})
	}
}

func multiOnce(t *testing.T, random *rand.Rand, clients [2][2]*Client, inside *sync.Map) {
	by := random.IntN(2)
	var locks []*Mutex
	for range 1 + random.IntN(4) {
		locks = append(locks, clients[random.IntN(2)][by].Mutex(string(rune('a'+random.IntN(4))), nil))
	}
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	if random.IntN(3) == 0 {
		ctx, cancel = context.WithTimeout(t.Context(), time.Duration(random.IntN(3000))*time.Millisecond)
		defer cancel()
	}
	m := MultiOf(locks...)
	take := m.Lock
	if random.IntN(4) == 0 {
		take = m.TryLock
	}
	l, err := take(ctx)
	if err != nil {
		if !errors.Is(err, ErrHeld) && ctx.Err() == nil {
			t.Error(err)
		}
		return
	}
	for _, lease := range l.Leases() {
		if _, taken := inside.LoadOrStore(shell.ClientOf(lease.hold().Lock).Config.Store+lease.Name(), lease); taken {
			t.Errorf("two are inside %q of %s", lease.Name(), shell.ClientOf(lease.hold().Lock).Config.Store)
		}
	}
	time.Sleep(time.Duration(random.IntN(1000)) * time.Millisecond) // virtual
	for _, lease := range l.Leases() {
		inside.Delete(shell.ClientOf(lease.hold().Lock).Config.Store + lease.Name())
	}
	if err := l.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestMulti_ThatGivesBackAReentry_LeavesTheMinHoldOfTheOtherHold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		b := mustLock(t, t.Context(), other, "b")
		a, err := c.Mutex("a", &LockOptions{MinHold: 10 * second}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(a.Context(t.Context()), 2*second)
		defer cancel()
		done := make(chan error, 1)
		go func() {
			_, err := c.Multi([]string{"a", "b"}, nil).Lock(ctx)
			done <- err
		}()
		synctest.Wait()
		start := time.Now()
		mustUnlock(t, a)
		if err := <-done; err == nil {
			t.Fatal("it got both")
		}
		mustUnlock(t, mustLock(t, t.Context(), other, "a"))
		if waited := time.Since(start); waited < 9*second {
			t.Errorf("another had it after %v, although the MinHold was 10 s", waited)
		}
		mustUnlock(t, b)
	})
}

// Locks of two clients are taken one by one, so one client may be closed during the wait for a lock of the other.
func TestMulti_OfWhichAClientIsClosedMeanwhile_SaysClosed(t *testing.T) {
	for _, when := range []string{"while it waits for another's", "as soon as it has the first"} {
		t.Run(when, func(t *testing.T) {
			bubble(t, &Options{Store: "2"}, func(t *testing.T, other *Client, h *hooks) {
				closed := make(chan error, 1)
				o := &Observer{}
				var c *Client
				if when == "as soon as it has the first" {
					o.Acquired = func(context.Context, Event) { closed <- c.Close() }
				}
				c = mustNew(t, h.Peer(), &Options{Store: "1", Observer: o})
				held := mustLock(t, t.Context(), other, "b")
				got := make(chan error, 1)
				go func() {
					_, err := MultiOf(c.Mutex("a", nil), other.Mutex("b", nil)).Lock(t.Context())
					got <- err
				}()
				synctest.Wait()
				if o.Acquired == nil {
					closed <- c.Close()
				}
				if err := <-got; !errors.Is(err, ErrClosed) || errors.Is(err, ErrHeld) {
					t.Errorf("got %v", err)
				}
				if err := <-closed; err != nil {
					t.Errorf("Close: %v", err)
				}
				mustUnlock(t, held)
				wantFree(t, other, "a", "b")
			})
		})
	}
}
