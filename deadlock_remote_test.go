package interlock

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/internal/waitgraph"
)

func TestDeadlock_OfNamedOwnersOfTwoClients_IsTold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		start := time.Now()
		one := holdThen(t, WithOwner(t.Context(), "one"), c, "a", "b", second)
		two := holdThen(t, WithOwner(t.Context(), "two"), other, "b", "a", 2*second)
		err := <-two // it came last
		if !errors.Is(err, ErrDeadlock) ||
			!strings.Contains(err.Error(),
				`owner two waits for "a", held by owner one, who waits for "b", held by owner two`) {
			t.Fatalf("got %v", err)
		}
		if took := time.Since(start); took > 2*second+2*shell.RemoteFirst+4*shell.SearchAfter {
			t.Errorf("found after %v", took)
		}
		if err := <-one; err != nil {
			t.Errorf("the other: %v", err)
		}
	})
}

// Other clients cannot recognise an anonymous owner, and a process is not an owner. So no deadlock is told when two
// processes wait for each other with four owners.
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
		wantX, wantY := holdThen(t, WithOwner(t.Context(), "p"), other, "p", "x", 0), holdThen(t,
			WithOwner(t.Context(), "q"), c, "q", "y", 0)
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
		c.in().Lock()
		if c.in().Deadlocks.Remote.Pause != shell.RemoteMost {
			t.Errorf("after ten minutes there are %v between two looks", c.in().Deadlocks.Remote.Pause)
		}
		c.in().Unlock()
		mustUnlock(t, last)
		for _, done := range []<-chan error{one, two, three} {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// TestDeadlock_OverClients_InRandomHistories is TestDeadlock_InRandomHistories for named owners of three clients.
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

// A name is the same owner in every process. Here it holds by one client and waits by the other.
func TestDeadlock_OfAnOwnerThatHoldsInOneProcessAndWaitsInAnother_IsTold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		there := func(name string) context.Context {
			return context.WithValue(t.Context(), core.OwnerKey{}, &core.Owner{ID: name, Named: true})
		}
		a := mustLock(t, there("one"), other, "a")
		two := holdThen(t, WithOwner(t.Context(), "two"), other, "b", "a", 0)
		synctest.Wait()
		time.Sleep(second) // virtual
		start := time.Now()
		if o := <-lockLater(WithOwner(t.Context(), "one"), c, "b"); !errors.Is(o.err, ErrDeadlock) {
			t.Errorf("got %v", o.err)
		}
		if took := time.Since(start); took > shell.RemoteMost+shell.RemoteFirst+2*shell.SearchAfter {
			t.Errorf("found after %v", took)
		}
		mustUnlock(t, a)
		if err := <-two; err != nil {
			t.Error(err)
		}
	})
}

// A lock that is kept closed by a MinHold or LockDelay frees itself, whatever its last owner waits for.
func TestDeadlock_IsNotTold_OfAHoldThatIsOverAndRests(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		ctxA := WithOwner(t.Context(), "A")
		l := must(t)(c.Mutex("l", &LockOptions{MinHold: 10 * time.Minute}).Lock(ctxA))
		b := holdThen(t, WithOwner(t.Context(), "B"), other, "m", "l", second)
		mustUnlock(t, l)
		a := lockLater(ctxA, c, "m")
		if err := <-b; err != nil { // it had to wait until the MinHold was over
			t.Errorf("B: %v", err)
		}
		if o := <-a; o.err != nil {
			t.Errorf("A: %v", o.err)
		} else {
			mustUnlock(t, o.lease)
		}
	})
}

// listing is an engine whose Locks yields these locks.
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

// row is a lock with one holder and these waiters.
func row(kind Kind, name, holder string, named bool, waiters ...string) driver.LockInfo {
	info := driver.LockInfo{Kind: kind, Name: name, Holders: []driver.Holder{{Owner: holder, Named: named, Token: 7}}}
	for _, w := range waiters {
		info.Waiters = append(info.Waiters, driver.Waiter{Owner: w, Named: true})
	}
	return info
}

// rests returns info with every holder marked as Cooldown: the hold is over and only keeps others out.
func rests(info driver.LockInfo) driver.LockInfo {
	info.Holders = slices.Clone(info.Holders)
	for i := range info.Holders {
		info.Holders[i].Cooldown = true
	}
	return info
}

// cycleOf returns the cycle of a list.
func cycleOf(t *testing.T, list listing) []waitgraph.ListEdge {
	t.Helper()
	g, err := waitgraph.Listed(t.Context(), list, core.Names.Waits)
	if err != nil {
		t.Fatal(err)
	}
	return g.Cycle()
}

// rw is a read/write lock with its holders and waiters, a letter each: capitals write, the others read.
func rw(name, holders, waiters string) driver.LockInfo {
	info := driver.LockInfo{Kind: driver.KindRWMutex, Name: name}
	for i, r := range holders {
		info.Holders = append(info.Holders, driver.Holder{
			Owner: strings.ToLower(string(r)), Named: true,
			Shared: r > 'Z', Token: uint64(i),
		})
	}
	for i, r := range waiters {
		info.Waiters = append(info.Waiters, driver.Waiter{
			Owner: strings.ToLower(string(r)), Named: true,
			Shared: r > 'Z', Position: i + 1,
		})
	}
	return info
}

// sem is a semaphore with its holders and waiters, a letter each. A holder has one permit for each time that its letter
// occurs, and a waiter wants that many.
func sem(name string, limit int, holders, waiters string) driver.LockInfo {
	info := driver.LockInfo{Kind: driver.KindSemaphore, Name: name, Limit: limit}
	for i, f := range strings.Fields(holders) {
		info.Holders = append(info.Holders, driver.Holder{
			Owner: f[:1], Named: true, Shared: true, Weight: len(f),
			Token: uint64(i),
		})
	}
	for i, f := range strings.Fields(waiters) {
		info.Waiters = append(info.Waiters, driver.Waiter{
			Owner: f[:1], Named: true, Shared: true, Weight: len(f),
			Position: i + 1,
		})
	}
	return info
}

func TestFarCycle_IsOfNamedOwnersThatOnlyWait(t *testing.T) {
	a, b := row(KindMutex, "a", "A", true, "B"), row(KindMutex, "b", "B", true, "A")
	for what, tc := range map[string]struct {
		list listing
		want int
	}{
		"two": {listing{a, b}, 2},
		"two, and who waits for them": {listing{
			row(KindMutex, "a", "A", true, "B", "0"), b,
			row(KindMutex, "0", "0", true),
		}, 2},
		"no cycle":                  {listing{a, row(KindMutex, "c", "C", true, "B")}, 0},
		"one is not named":          {listing{a, row(KindMutex, "b", "B", false, "A")}, 0},
		"one may get on elsewhere":  {listing{a, b, row(KindMutex, "c", "C", true, "A")}, 0},
		"one waits for permits too": {listing{a, b, row(driver.KindSemaphore, "a", "A", true, "B")}, 0},
		"one waits for a term too":  {listing{a, b, row(driver.KindElection, "a", "A", true, "B")}, 0},
		"one waits for what nobody has": {listing{
			a, b,
			{Kind: KindMutex, Name: "c", Waiters: []driver.Waiter{{Owner: "A", Named: true}}},
		}, 0},
		"the other wait is within it too": {listing{a, b, row(KindMutex, "c", "B", true, "A")}, 2},
		"one hold is over and rests":      {listing{a, rests(b)}, 0},
		"an anonymous owner of the same id": {listing{
			a,
			{Kind: KindMutex, Name: "b", Holders: b.Holders, Waiters: []driver.Waiter{{Owner: "A"}}},
		}, 0},
	} {
		if found := cycleOf(t, tc.list); len(found) != tc.want || tc.want > 0 && found[0].What.Owner != "A" {
			t.Errorf("%s: %+v", what, found)
		}
	}
}

func TestFarCycle_IsOfReadersWritersAndPermitsToo(t *testing.T) {
	for what, tc := range map[string]struct {
		list listing
		want int
	}{
		"a reader waits for a mutex whose holder waits to write": {listing{
			rw("x", "a", "B"),
			row(KindMutex, "m", "b", true, "a"),
		}, 2},
		"the same, beside a reader who does not wait": {listing{
			rw("x", "ca", "B"),
			row(KindMutex, "m", "b", true, "a"),
		}, 2},
		"a reader waits for readers": {listing{
			rw("x", "a", "b"),
			row(KindMutex, "m", "b", true, "a"),
		}, 0},
		"a reader waits for a writer": {listing{
			rw("x", "A", "b"),
			row(KindMutex, "m", "b", true, "a"),
		}, 2},
		"a reader waits behind a writer who waits for a reader": {listing{
			rw("x", "a", "Cb"),
			row(KindMutex, "m", "b", true, "a"),
		}, 3},
		"two who both read what the other wants to write": {
			listing{rw("x", "a", "B"), rw("y", "b", "A")},
			2,
		},
		"an upgrade waits for a reader who waits for what it has": {listing{
			rw("x", "ab", "A"),
			row(KindMutex, "m", "a", true, "b"),
		}, 2},
		"all permits are those of one who waits": {listing{
			sem("x", 2, "aa", "b"),
			row(KindMutex, "m", "b", true, "a"),
		}, 2},
		"other permits may come back": {listing{
			sem("x", 2, "a c", "b"),
			row(KindMutex, "m", "b", true, "a"),
		}, 0},
		"others may come back, but too few": {listing{
			sem("x", 2, "a c", "bb"),
			row(KindMutex, "m", "b", true, "a"),
		}, 2},
		"the others are stuck too": {listing{
			sem("x", 2, "a c", "b"),
			row(KindMutex, "m", "b", true, "a", "c"),
		}, 2},
		"its own permits may come back": {listing{
			sem("x", 2, "a b", "b"),
			row(KindMutex, "m", "b", true, "a"),
		}, 0},
		"permits by two holds are those of several goroutines": {listing{
			sem("x", 2, "a a", "b"),
			row(KindMutex, "m", "b", true, "a"),
		}, 0},
		"permits of one who waits twice are": {listing{
			sem("x", 2, "aa", "b"),
			row(KindMutex, "m", "b", true, "a"), row(KindMutex, "n", "b", true, "a"),
		}, 0},
		"few permits are wanted behind one who wants too many": {listing{
			sem("x", 3, "aa", "cc b"),
			row(KindMutex, "m", "b", true, "a"),
		}, 3},
		"few permits are wanted before one who wants too many": {listing{
			sem("x", 3, "aa", "b cc"),
			row(KindMutex, "m", "b", true, "a"),
		}, 0},
		"the writer in front may get on elsewhere": {listing{
			rw("x", "a", "Cb"),
			row(KindMutex, "m", "b", true, "a"), row(KindMutex, "n", "0", true, "c"),
		}, 0},
		"one of two readers in the way is stuck, and that is enough": {listing{
			rw("x", "ac", "B"),
			row(KindMutex, "m", "b", true, "a"),
		}, 2},
		"the limit is not known": {listing{
			sem("x", 0, "a", "b"),
			row(KindMutex, "m", "b", true, "a"),
		}, 0},
		"a reader of another lock of that name": {listing{
			rw("m", "a", "B"),
			row(KindMutex, "m", "b", true, "a"),
		}, 2},
		"a writer waits for a reader who waits for nobody known here": {listing{
			rw("x", "a", "B"),
			row(KindMutex, "m", "z", false, "a"),
		}, 0},
	} {
		if found := cycleOf(t, tc.list); len(found) != tc.want {
			t.Errorf("%s: %+v", what, found)
		}
	}
}

func TestFarCycle_CountsIfItIsSeenTwice_WithTheSameTokensAndWaits(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), peer(t, h, nil), "a")
		waits := lockLater(WithOwner(t.Context(), "A"), c, "a")
		synctest.Wait()
		begin := time.Now()
		took := func(list listing) {
			g, err := waitgraph.Listed(t.Context(), list, core.Names.Waits)
			c.in().Lock()
			c.in().Deadlocks.Remote.Pause = shell.RemoteFirst // a search is planned
			c.in().Deadlocks.Remote.TakeList(c.in(), g, err)
			c.in().Unlock()
			synctest.Wait()
		}
		list := func(token uint64, since time.Time) listing {
			a, b := row(KindMutex, "a", "B", true, "A"), row(KindMutex, "b", "A", true, "B")
			a.Holders[0].Token, a.Waiters[0].Since, b.Waiters[0].Since = token, since, begin
			return listing{a, b}
		}
		for _, found := range []listing{
			list(1, begin.Add(1)), list(3, begin.Add(1)), list(3, begin.Add(2)), nil, list(3, begin.Add(2)),
		} {
			took(found)
			stillWaits(t, waits, "although it has been seen once")
		}
		// The waiters have gone while the engine was asked: the answer is of no use.
		c.in().Lock()
		c.in().Deadlocks.Remote.Pause = 0
		c.in().Deadlocks.Remote.TakeList(c.in(), nil, nil)
		if c.in().Deadlocks.Remote.Pause != 0 {
			t.Error("an answer that comes too late plans a search")
		}
		c.in().Unlock()
		took(list(3, begin.Add(2)))
		if o := <-waits; !errors.Is(o.err, ErrDeadlock) {
			t.Errorf("got %v", o.err)
		}
		mustUnlock(t, l)
	})
}
