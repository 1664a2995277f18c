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
)

// taking takes a lock of some kind.
type taking func(ctx context.Context) (*Lease, error)

func mutex(c *Client, name string) taking  { return c.Mutex(name, nil).Lock }
func reads(c *Client, name string) taking  { return c.RWMutex(name, nil).RLock }
func writes(c *Client, name string) taking { return c.RWMutex(name, nil).Lock }

func permits(c *Client, name string, limit, n int) taking {
	return func(ctx context.Context) (*Lease, error) { return c.Semaphore(name, limit, nil).Acquire(ctx, n) }
}

// takeThen takes first and, at the given instant from now, second with the same owner. It gives back what it has when
// done.
func takeThen(t *testing.T, ctx context.Context, first, second taking, at time.Duration) <-chan error {
	t.Helper()
	l, err := first(ctx)
	if err != nil {
		t.Fatal(err)
	}
	out := make(chan error, 1)
	go func() {
		time.Sleep(at) // virtual
		inner, err := second(l.Context(ctx))
		if err == nil {
			err = inner.Unlock(ctx)
		}
		out <- errors.Join(err, l.Unlock(context.WithoutCancel(ctx)))
	}()
	return out
}

// byOneAndTwo runs f with anonymous owners of one client, and with named ones of one and of two.
func byOneAndTwo(t *testing.T, f func(t *testing.T, as func(string) context.Context, c, other *Client)) {
	for _, how := range []string{"anonymous", "named", "named, two clients"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				other := c
				if strings.Contains(how, "two") {
					other = peer(t, h, nil)
				}
				f(t, func(name string) context.Context {
					if how == "anonymous" {
						return t.Context()
					}
					return WithOwner(t.Context(), name)
				}, c, other)
			})
		})
	}
}

func TestDeadlock_OfAReaderWhoWaitsForAMutex_WhoseHolderWaitsToWrite_IsTold(t *testing.T) {
	byOneAndTwo(t, func(t *testing.T, as func(string) context.Context, c, other *Client) {
		beside, err := reads(c, "a")(t.Context()) // who does not wait changes nothing
		if err != nil {
			t.Fatal(err)
		}
		one := takeThen(t, as("one"), reads(c, "a"), mutex(c, "m"), second)
		two := takeThen(t, as("two"), mutex(other, "m"), writes(other, "a"), 2*second)
		err = <-two // it came last
		if !errors.Is(err, ErrDeadlock) || !strings.Contains(err.Error(), `waits to write "a", held by owner `) ||
			!strings.Contains(err.Error(), `, who waits for "m", held by owner `) {
			t.Errorf("got %v", err)
		}
		if err := <-one; err != nil {
			t.Errorf("the other: %v", err)
		}
		mustUnlock(t, beside)
	})
}

func TestDeadlock_OfTwoReadersWhoWriteWhatTheOtherReads_IsTold(t *testing.T) {
	byOneAndTwo(t, func(t *testing.T, as func(string) context.Context, c, other *Client) {
		oneIsTold(t, takeThen(t, as("one"), reads(c, "a"), writes(c, "b"), second),
			takeThen(t, as("two"), reads(other, "b"), writes(other, "a"), second))
	})
}

func TestDeadlock_OverAllPermits_IsTold(t *testing.T) {
	byOneAndTwo(t, func(t *testing.T, as func(string) context.Context, c, other *Client) {
		oneIsTold(t, takeThen(t, as("one"), permits(c, "s", 3, 2), mutex(c, "m"), second),
			takeThen(t, as("two"), mutex(other, "m"), permits(other, "s", 3, 2), second))
	})
}

// A reader waits behind a writer, the writer waits for another reader, and that one waits for the first. Only the
// engine knows the order of the queue.
func TestDeadlock_BehindAWriter_IsToldToNamedOwners(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		as := func(name string) context.Context { return WithOwner(t.Context(), name) }
		oneIsTold(t, takeThen(t, as("reader"), reads(c, "a"), mutex(c, "m"), 3*second),
			takeThen(t, as("writer"), mutex(c, "w"), writes(c, "a"), second),
			takeThen(t, as("behind"), mutex(other, "m"), reads(other, "a"), 2*second))
	})
}

// Each of these waits may end well, although the owners seem to wait for each other.
func TestDeadlock_IsNotTold_WhilePermitsOrReadsMayComeBack(t *testing.T) {
	for what, wait := range map[string]func(t *testing.T, as func(string) context.Context, c, other *Client) (one,
		two <-chan error){
		"a third has permits enough": func(t *testing.T, as func(string) context.Context, c, other *Client) (one,
			two <-chan error,
		) {
			return takeThen(t, as("one"), permits(c, "s", 3, 2), mutex(c, "m"), second),
				takeThen(t, as("two"), mutex(other, "m"), permits(other, "s", 3, 1), second)
		},
		"it has some itself": func(t *testing.T, as func(string) context.Context, c, other *Client) (one,
			two <-chan error,
		) {
			return takeThen(t, as("one"), permits(c, "s", 3, 1), permits(c, "s", 3, 2), second),
				takeThen(t, as("two"), permits(other, "s", 3, 1), permits(other, "s", 3, 2), second)
		},
	} {
		t.Run(what, func(t *testing.T) {
			byOneAndTwo(t, func(t *testing.T, as func(string) context.Context, c, other *Client) {
				third, err := permits(c, "s", 3, 1)(t.Context())
				if err != nil {
					t.Fatal(err)
				}
				one, two := wait(t, as, c, other)
				time.Sleep(time.Hour) // virtual
				stillWaits(t, one, "while permits may come back")
				stillWaits(t, two, "while permits may come back")
				mustUnlock(t, third)
				if what != "it has some itself" {
					if err := errors.Join(<-one, <-two); err != nil {
						t.Error(err)
					}
				}
			})
		})
	}
}

// Two pools of workers, whose workers share an owner. All that wait look stuck, but those that work will give permits
// back.
func TestDeadlock_IsNotTold_OfPoolsOfWorkers(t *testing.T) {
	byOneAndTwo(t, func(t *testing.T, as func(string) context.Context, c, other *Client) {
		const limit = 4
		var all sync.WaitGroup
		for name, by := range map[string]*Client{"one": c, "two": other} {
			job, err := by.Lock(as(name), "job "+name)
			if err != nil {
				t.Fatal(err)
			}
			ctx := job.Context(as(name))
			var pool sync.WaitGroup
			for range 6 {
				pool.Go(func() {
					for range 5 {
						l, err := permits(by, "s", limit, 1)(ctx)
						if err != nil {
							t.Errorf("%s: %v", name, err)
							return
						}
						time.Sleep(10 * second) // virtual: it works
						mustUnlock(t, l)
					}
				})
			}
			all.Go(func() {
				pool.Wait()
				mustUnlock(t, job)
			})
		}
		all.Wait()
	})
}

// An owner that gets ErrDeadlock from Upgrade still has its upgradeable read.
func TestDeadlock_OfAnUpgrade_LeavesTheRead(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		up, err := c.RWMutex("a", nil).UpgradeableRLock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		m := mustLock(t, up.Context(t.Context()), c, "m")
		reader := takeThen(t, t.Context(), reads(c, "a"), mutex(c, "m"), 0)
		synctest.Wait()
		time.Sleep(second) // virtual
		if err := up.Upgrade(t.Context()); !errors.Is(err, ErrDeadlock) {
			t.Errorf("got %v", err)
		}
		if s, ok := up.Stamp(); !ok || !s.Shared {
			t.Errorf("%+v, %v", s, ok)
		}
		mustUnlock(t, m)
		if err := <-reader; err != nil {
			t.Error(err)
		}
		if err := up.Upgrade(t.Context()); err != nil {
			t.Error(err)
		}
		mustUnlock(t, up)
	})
}

// TestDeadlock_OverAllKinds_InRandomHistories is TestDeadlock_OverClients_InRandomHistories for mutexes, reads, writes
// and permits.
func TestDeadlock_OverAllKinds_InRandomHistories(t *testing.T) {
	for _, seed := range []uint64{rand.Uint64(), rand.Uint64(), rand.Uint64()} {
		for _, ordered := range []bool{false, true} {
			for _, named := range []bool{false, true} {
				t.Run(fmt.Sprintf("seed=%d,ordered=%v,named=%v", seed, ordered, named), func(t *testing.T) {
					bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
						tangleAll(t, c, peer(t, h, nil), seed, ordered, named)
					})
				})
			}
		}
	}
}

// tangleAll has owners take locks of all kinds. It fails unless deadlocks are told when they keep no order, and if any
// is told when they do. Anonymous owners are of one client, do not read, and take one permit. A wait behind others that
// want more is found for named owners only.
func tangleAll(t *testing.T, c, other *Client, seed uint64, ordered, named bool) {
	var deadlocks int
	var mu sync.Mutex // guards deadlocks
	var all sync.WaitGroup
	for n := range uint64(7) {
		random := rand.New(rand.NewPCG(seed, n))
		ctx, by := t.Context(), c
		if named {
			ctx = WithOwner(ctx, fmt.Sprint("owner ", n))
			if n%2 == 1 {
				by = other
			}
		}
		all.Go(func() {
			for range 60 {
				names := random.Perm(5)[:2+random.IntN(2)]
				if ordered {
					names = []int{random.IntN(2), 2, 3 + random.IntN(2)}
				}
				var takes []taking
				for _, name := range names {
					name, n := fmt.Sprint(name), 1
					if named {
						n += random.IntN(2)
					}
					kinds := []taking{mutex(by, name), writes(by, name), permits(by, name, 2, n), reads(by, name)}
					if !named {
						kinds = kinds[:3]
					}
					takes = append(takes, kinds[random.IntN(len(kinds))])
				}
				if tangleThese(t, ctx, takes, random) {
					mu.Lock()
					deadlocks++
					mu.Unlock()
				}
			}
		})
	}
	all.Wait()
	t.Logf("%d deadlocks", deadlocks)
	if ordered == (deadlocks > 0) {
		t.Errorf("%d deadlocks", deadlocks)
	}
}

// tangleThese takes locks one within the other, and reports whether there was a deadlock.
func tangleThese(t *testing.T, ctx context.Context, takes []taking, random *rand.Rand) bool {
	var held []*Lease
	defer func() {
		for _, l := range held {
			if err := l.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
	}()
	for _, take := range takes {
		l, err := take(ctx)
		if errors.Is(err, ErrDeadlock) {
			return true
		}
		if err != nil {
			t.Error(err)
			return false
		}
		held = append(held, l)
		if len(held) == 1 {
			ctx = l.Context(ctx)
		}
		time.Sleep(time.Duration(random.IntN(300)) * time.Millisecond) // virtual
	}
	return false
}
