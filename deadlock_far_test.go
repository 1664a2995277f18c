package interlock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestDeadlock_OfNamedOwnersOfTwoClients_IsTold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		start := time.Now()
		one := holdThen(t, WithOwner(t.Context(), "one"), c, "a", "b", second)
		two := holdThen(t, WithOwner(t.Context(), "two"), other, "b", "a", 2*second)
		err := <-two // it came last
		if !errors.Is(err, ErrDeadlock) ||
			!strings.Contains(err.Error(), `owner two waits for "a", held by owner one, who waits for "b", held by owner two`) {
			t.Fatalf("got %v", err)
		}
		if took := time.Since(start); took > 2*second+2*farFirst+4*seekAfter {
			t.Errorf("found after %v", took)
		}
		if err := <-one; err != nil {
			t.Errorf("the other: %v", err)
		}
	})
}

// Anonymous owners are not the same for everybody, and a process is not an owner: processes that wait for each other are not
// in a deadlock.
func TestDeadlock_OfTwoClients_IsNotTold_WithoutNames_NorOfProcesses(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
		defer cancel()
		one, two := holdThen(t, ctx, c, "a", "b", 0), holdThen(t, ctx, other, "b", "a", second)
		for _, done := range []<-chan error{one, two} {
			if err := <-done; errors.Is(err, ErrDeadlock) {
				t.Errorf("got %v", err)
			}
		}
		// Two processes wait for each other, four owners do not.
		x, y := mustLock(t, WithOwner(t.Context(), "x"), c, "x"), mustLock(t, WithOwner(t.Context(), "y"), other, "y")
		wantX, wantY := holdThen(t, WithOwner(t.Context(), "p"), other, "p", "x", 0), holdThen(t, WithOwner(t.Context(), "q"), c, "q", "y", 0)
		time.Sleep(time.Minute) // virtual
		mustUnlock(t, x)
		mustUnlock(t, y)
		if err := errors.Join(<-wantX, <-wantY); err != nil {
			t.Error(err)
		}
	})
}

func TestDeadlock_OfTwoClients_IsNotTold_OfALine_AndIsLookedForLessAndLess(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		last := mustLock(t, WithOwner(t.Context(), "four"), other, "4")
		three := holdThen(t, WithOwner(t.Context(), "three"), other, "3", "4", 0)
		two := holdThen(t, WithOwner(t.Context(), "two"), c, "2", "3", second)
		one := holdThen(t, WithOwner(t.Context(), "one"), c, "1", "2", 2*second)
		time.Sleep(10 * time.Minute) // virtual
		c.lock()
		if c.seek.far.pause != farMost {
			t.Errorf("after ten minutes there are %v between two looks", c.seek.far.pause)
		}
		c.unlock()
		mustUnlock(t, last)
		for _, done := range []<-chan error{one, two, three} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestDeadlock_OverClients_InRandomHistories is as TestDeadlock_InRandomHistories, of named owners of three clients.
func TestDeadlock_OverClients_InRandomHistories(t *testing.T) {
	for _, seed := range []uint64{rand.Uint64(), rand.Uint64()} {
		for _, ordered := range []bool{false, true} {
			t.Run(fmt.Sprintf("seed=%d,ordered=%v", seed, ordered), func(t *testing.T) {
				bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
					clients := []*Client{c, peer(t, h, nil), peer(t, h, nil)}
					var deadlocks int
					var mu sync.Mutex // guards deadlocks
					var all sync.WaitGroup
					for n := range uint64(6) {
						random := rand.New(rand.NewPCG(seed, n))
						ctx := WithOwner(t.Context(), fmt.Sprint("owner ", n))
						all.Go(func() {
							for range 10 {
								if tangle(t, ctx, clients[n%3], random, ordered) {
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
				})
			})
		}
	}
}

// listing is an engine that lists what it is told to.
type listing []driver.LockInfo

func (l listing) Locks(context.Context, string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		for _, info := range l {
			if !yield(info, nil) {
				return
			}
		}
	}
}

// row is a lock that one holds and others wait for.
func row(kind Kind, name, holder string, named bool, waiters ...string) driver.LockInfo {
	info := driver.LockInfo{Kind: kind, Name: name, Holders: []driver.Holder{{Owner: holder, Named: named, Token: 7}}}
	for _, w := range waiters {
		info.Waiters = append(info.Waiters, driver.Waiter{Owner: w, Named: true})
	}
	return info
}

func TestFarCycle_IsOfNamedOwnersThatOnlyWait(t *testing.T) {
	a, b := row(KindMutex, "a", "A", true, "B"), row(KindMutex, "b", "B", true, "A")
	for what, tc := range map[string]struct {
		list listing
		want int
	}{
		"two":                               {listing{a, b}, 2},
		"two, and who waits for them":       {listing{row(KindMutex, "a", "A", true, "B", "0"), b, row(KindMutex, "0", "0", true)}, 2},
		"no cycle":                          {listing{a, row(KindMutex, "c", "C", true, "B")}, 0},
		"one is not named":                  {listing{a, row(KindMutex, "b", "B", false, "A")}, 0},
		"one may get on elsewhere":          {listing{a, b, row(KindMutex, "c", "C", true, "A")}, 0},
		"one waits for permits too":         {listing{a, b, row(driver.KindSemaphore, "a", "A", true, "B")}, 0},
		"one waits for what nobody has":     {listing{a, b, {Kind: KindMutex, Name: "c", Waiters: []driver.Waiter{{Owner: "A", Named: true}}}}, 0},
		"the other wait is within it too":   {listing{a, b, row(KindMutex, "c", "B", true, "A")}, 2},
		"an anonymous owner of the same id": {listing{a, {Kind: KindMutex, Name: "b", Holders: b.Holders, Waiters: []driver.Waiter{{Owner: "A"}}}}, 0},
	} {
		found, err := farCycle(t.Context(), tc.list)
		if err != nil || len(found) != tc.want || tc.want > 0 && found[0].owner != "A" {
			t.Errorf("%s: %+v, %v", what, found, err)
		}
	}
}

func TestFarCycle_CountsIfItIsSeenTwice_WithTheSameTokensAndWaits(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), peer(t, h, nil), "a")
		waits := lockLater(WithOwner(t.Context(), "A"), c, "a")
		synctest.Wait()
		begin := time.Now()
		knots := func(token uint64, since time.Time) []farKnot {
			return []farKnot{
				{"A", driver.Key{Kind: KindMutex, Name: "a"}, since, "B", token}, {"B", driver.Key{Kind: KindMutex, Name: "b"}, begin, "A", 2},
			}
		}
		for _, found := range [][]farKnot{
			knots(1, begin.Add(1)), knots(3, begin.Add(1)), knots(3, begin.Add(2)), nil, knots(3, begin.Add(2)),
		} {
			c.lock()
			c.seek.far.took(c, found, nil)
			c.unlock()
			synctest.Wait()
			select {
			case o := <-waits:
				t.Fatalf("told %v after %+v", o.err, found)
			default:
			}
		}
		c.lock()
		c.seek.far.took(c, knots(3, begin.Add(2)), nil)
		c.unlock()
		if o := <-waits; !errors.Is(o.err, ErrDeadlock) {
			t.Errorf("got %v", o.err)
		}
		mustUnlock(t, l)
	})
}
