package interlock

import (
	"context"
	"fmt"
	"iter"
	"maps"
	"slices"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/internal/waitgraph"
)

// lists is an engine that counts how often all its locks are listed.
type lists struct {
	*hooks
	n *atomic.Int64
}

func (l lists) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	l.n.Add(1)
	return l.hooks.Locks(ctx, prefix)
}

// crowd has many clients whose named owners hold one lock each and wait for the same one, which the owner hub holds,
// anonymous if that is empty. It returns how often they have listed all locks after so long.
func crowd(t *testing.T, many int, hub string, d time.Duration) (listed int64) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		var n atomic.Int64
		holder := t.Context()
		if hub != "" {
			holder = WithOwner(holder, hub)
		}
		hot := mustLock(t, holder, c, "hot")
		var all []<-chan error
		for i := range many {
			waits := mustNew(t, lists{h, &n}, nil)
			defer waits.Close()
			job := WithOwner(t.Context(), fmt.Sprint("job ", i))
			all = append(all, holdThen(t, job, waits, fmt.Sprint("own ", i), "hot", 0))
		}
		time.Sleep(d) // virtual
		listed = n.Load()
		if h.looks.Load() > int64(many)*2*int64(d/shell.RemoteFirst) {
			t.Errorf("%d looks", h.looks.Load())
		}
		mustUnlock(t, hot)
		for _, done := range all {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
	return listed
}

// A list costs as much as the server has keys. An anonymous owner is in no deadlock over clients, so nothing is listed
// for those who wait for it; for those who wait for a named one they list by turns.
func TestDeadlock_OverClients_OfACrowd_ListsNoMoreThanOne(t *testing.T) {
	if n := crowd(t, 24, "", 10*time.Minute); n != 0 {
		t.Errorf("%d lists for waiters of an anonymous owner", n)
	}
	one := crowd(t, 1, "hub", 10*time.Minute)
	all := crowd(t, 24, "hub", 10*time.Minute)
	if one == 0 || all > 2*one {
		t.Errorf("%d lists for 24 waiters of a named owner, %d for one", all, one)
	}
}

// Very many owners that wait and hold something must not keep Machine.Mu from everybody else.
func TestDeadlock_SearchOfManyWaiters_HoldsTheMutexForAFewAtATime(t *testing.T) {
	const many = 10*core.AtOnce + 1
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		hot := mustLock(t, t.Context(), c, "hot")
		var all []<-chan error
		for i := range many {
			all = append(all, holdThen(t, t.Context(), c, fmt.Sprint("own ", i), "hot", 0))
		}
		synctest.Wait() // until the first search is due
		waiters := c.in().WaiterSet()
		if len(waiters.Owners) != many || !waiters.Suspicious {
			t.Fatalf("%d owners wait", len(waiters.Owners))
		}
		parts, longest, now := 0, 0, 0
		c.in().InParts(slices.Collect(maps.Values(waiters.Owners)), func(*shell.WaitingOwner) {
			if c.in().Instant == 0 { // Machine.Mu has been taken anew
				c.in().Instant, now = 1, 0
				parts++
			}
			now++
			longest = max(longest, now)
		})
		if parts != 11 || longest != core.AtOnce {
			t.Errorf("%d parts, of %d owners at most", parts, longest)
		}
		if g := c.in().WaitGraph(waiters); len(g.Waits) != many {
			t.Errorf("the graph has %d waits", len(g.Waits))
		}
		mustUnlock(t, hot)
		for _, done := range all {
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	})
}

// What has moved since the search has looked at it is told nothing.
func TestDeadlock_OfWhatHasMovedSince_IsNotTold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		one := holdThen(t, t.Context(), c, "a", "b", second)
		two := holdThen(t, t.Context(), c, "b", "a", second)
		time.Sleep(second + shell.SearchAfter/2) // virtual
		g := c.in().WaitGraph(c.in().WaiterSet())
		g.Settle()
		found := g.Cycle()
		c.in().Lock()
		if len(found) != 2 || slices.ContainsFunc(found, shell.HasMoved) {
			t.Fatalf("the cycle: %+v", found)
		}
		c.in().Unlock()
		oneIsTold(t, one, two)
		c.in().Lock()
		defer c.in().Unlock()
		if !slices.ContainsFunc(found, shell.HasMoved) {
			t.Error("it stands although one has got on")
		}
	})
}

// The last named waiter may leave while the engine is asked.
func TestDeadlock_OfAWaiterThatLeavesDuringTheSearch_IsLookedForNoMore(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		holdsHot := mustLock(t, WithOwner(t.Context(), "hub"), c, "hot")
		ctx, cancel := context.WithCancel(WithOwner(t.Context(), "job"))
		defer cancel()
		mustLock(t, ctx, c, "own")
		waits := lockLater(ctx, c, "hot")
		time.Sleep(second) // virtual
		cancel()
		<-waits
		time.Sleep(second) // virtual: the next search finds nobody
		c.in().Lock()
		c.in().Deadlocks.Remote.TakeList(c.in(), nil, nil)
		c.in().Unlock()
		mustUnlock(t, holdsHot)
	})
}

// What looks say of an owner that waits for "x" and has "m".
func TestSuspect_SaysWhatLooksCannotExclude(t *testing.T) {
	at := func(info driver.LockInfo, seconds ...int) driver.LockInfo {
		info.Waiters = slices.Clone(info.Waiters)
		for i, s := range seconds {
			info.Waiters[i].Since = time.Unix(int64(s), 0)
		}
		return info
	}
	x, m := row(KindMutex, "x", "B", true, "A"), row(KindMutex, "m", "A", true, "B")
	inLine := func(place, of int) waitgraph.Suspicion {
		return waitgraph.Suspicion{Possible: true, Place: place, Of: of}
	}
	inFront := func(of int) waitgraph.Suspicion { s := inLine(0, of); s.Likely = true; return s }
	none, possible, likely := waitgraph.Suspicion{}, inLine(0, 1), inFront(1)
	anonymous := driver.LockInfo{Kind: KindMutex, Name: "m", Waiters: []driver.Waiter{{Owner: "C"}}}
	third := row(KindMutex, "x", "B", true, "C", "A", "D")
	for what, tc := range map[string]struct {
		locks listing
		want  waitgraph.Suspicion
	}{
		"the holder has no name":                    {listing{row(KindMutex, "x", "B", false, "A"), m}, none},
		"the hold is over and rests":                {listing{rests(x), m}, none},
		"it has been let in":                        {listing{row(KindMutex, "x", "A", true), m}, none},
		"nobody waits for what it has":              {listing{x, row(KindMutex, "m", "A", true)}, possible},
		"only one without a name does":              {listing{x, anonymous}, possible},
		"one waits for what it has":                 {listing{x, m}, likely},
		"one who came before":                       {listing{at(x, 7), at(m, 6)}, likely},
		"one who came after, and would be told":     {listing{at(x, 7), at(m, 8)}, possible},
		"it is the second of three in line":         {listing{third, row(KindMutex, "m", "A", true)}, inLine(1, 3)},
		"it waits behind a writer, for no holder":   {listing{rw("x", "", "Ca"), rw("m", "", "")}, inLine(1, 2)},
		"a reader stands behind it, and came first": {listing{rw("x", "b", "Ac"), rw("m", "", "")}, inFront(2)},
	} {
		look := func(_ context.Context, key driver.Key) (driver.LockInfo, error) {
			for _, l := range tc.locks {
				if l.Name == key.Name {
					return l, nil
				}
			}
			return driver.LockInfo{}, nil
		}
		wants := driver.Key{Kind: tc.locks[0].Kind, Name: "x"}
		a := waitgraph.Waiting{Owner: "A", Waits: []driver.Key{wants}, Holds: []driver.Key{{Name: "m"}}}
		if a.Waits[0].Kind == KindRWMutex {
			a.Owner = "a"
		}
		if got, err := waitgraph.Suspect(t.Context(), look, []waitgraph.Waiting{a}); got != tc.want || err != nil {
			t.Errorf("%s: %+v, %v; want %+v", what, got, err, tc.want)
		}
	}
}

// Whatever a list shows to be a deadlock, the client of the owner that is told suspects it.
func TestSuspect_OfEveryCycle_FindsTheOneThatIsTold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		var n atomic.Int64
		one := mustNew(t, lists{h, &n}, nil)
		defer one.Close()
		oneIsTold(t, holdThen(t, WithOwner(t.Context(), "first"), c, "a", "b", second),
			holdThen(t, WithOwner(t.Context(), "last"), one, "b", "a", 2*second))
		if n.Load() != 2 {
			t.Errorf("%d lists, want the two that are told from", n.Load())
		}
	})
}
