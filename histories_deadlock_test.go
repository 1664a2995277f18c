package interlock

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
	"github.com/interlock-go/interlock/internal/waitgraph"
)

// The search for deadlocks (internal/shell/deadlock.go) compared with a model that tries every order of events, over
// small random lists.

// world is a list of locks, and the model of what may come of it: an owner that can get on gives everything back and
// wants no more.
type world struct {
	locks  listing
	owners []string // those with a name that wait
}

// able reports whether one of owner's waits can be granted while only those of present have not given everything back.
// It is written after the rules of the locks, and shares no code with the search.
func (w *world) able(owner string, present []string) bool {
	for _, l := range w.locks {
		for at, wait := range l.Waiters {
			if wait.Named && wait.Owner == owner && w.grantable(l, at, present) {
				return true
			}
		}
	}
	return false
}

func (w *world) grantable(l driver.LockInfo, at int, present []string) bool {
	wait, taken := l.Waiters[at], 0
	there := func(owner string, named bool) bool {
		return named && owner != wait.Owner && slices.Contains(present, owner)
	}
	for _, h := range l.Holders {
		if !there(h.Owner, h.Named) {
			continue
		}
		switch {
		case l.Kind == driver.KindSemaphore && w.likeAPool(l, h.Owner): // its other goroutines may give them back
		case l.Kind == driver.KindSemaphore:
			taken += h.Weight
		case l.Kind == KindMutex || !h.Shared || !wait.Shared:
			return false
		}
	}
	if l.Kind != KindMutex {
		for _, ahead := range l.Waiters[:at] {
			if there(ahead.Owner, ahead.Named) {
				return false
			}
		}
	}
	return l.Kind != driver.KindSemaphore || taken+wait.Weight <= l.Limit
}

// likeAPool reports whether owner has the permits of l by several holds, or waits several times.
func (w *world) likeAPool(l driver.LockInfo, owner string) bool {
	holds, waits := 0, 0
	for _, h := range l.Holders {
		if h.Named && h.Owner == owner {
			holds++
		}
	}
	for _, l := range w.locks {
		for _, wait := range l.Waiters {
			if wait.Named && wait.Owner == owner {
				waits++
			}
		}
	}
	return holds > 1 || waits > 1
}

// saved tries every order in which owners can get on, and returns those that can in at least one.
func (w *world) saved() map[string]bool {
	saved, tried := make(map[string]bool), make(map[string]bool)
	var try func(present []string)
	try = func(present []string) {
		if key := strings.Join(present, ","); tried[key] {
			return
		}
		tried[strings.Join(present, ",")] = true
		for i, owner := range present {
			if w.able(owner, present) {
				saved[owner] = true
				try(slices.Delete(slices.Clone(present), i, i+1))
			}
		}
	}
	try(w.owners)
	return saved
}

// randomWorld returns locks with random holders that may be inside together, and with random queues.
func randomWorld(r *rand.Rand) *world {
	w := &world{}
	names, token := []string{"a", "b", "c", "d", "e"}, uint64(0)
	for i := range 2 + r.IntN(3) {
		kind := []Kind{KindMutex, driver.KindRWMutex, driver.KindSemaphore}[r.IntN(3)]
		l := driver.LockInfo{Kind: kind, Name: fmt.Sprint(i), Limit: 1 + r.IntN(4)}
		left := l.Limit
		hold := func(owner string, shared bool, weight int) {
			token++
			l.Holders = append(l.Holders, driver.Holder{
				Owner: owner, Named: r.IntN(6) > 0, Shared: shared,
				Weight: weight, Token: token,
			})
		}
		crowd := r.Perm(len(names))
		switch {
		case kind == driver.KindSemaphore:
			for left > 0 && r.IntN(5) > 0 {
				n := 1 + r.IntN(left)
				left -= n
				hold(names[r.IntN(len(names))], true, n)
			}
		case kind == driver.KindRWMutex && r.IntN(2) == 0:
			for _, at := range crowd[:1+r.IntN(3)] {
				hold(names[at], true, 1)
			}
		default:
			hold(names[crowd[0]], false, 1)
		}
		for _, at := range r.Perm(len(names))[:r.IntN(4)] {
			owner := names[at]
			holds := func(h driver.Holder) bool { return h.Named && h.Owner == owner }
			if kind != driver.KindSemaphore && slices.ContainsFunc(l.Holders, holds) {
				continue // it would be let in, or refused
			}
			l.Waiters = append(l.Waiters, driver.Waiter{
				Owner: owner, Named: r.IntN(8) > 0, Weight: 1 + r.IntN(l.Limit), Position: len(l.Waiters) + 1,
				Shared: kind == driver.KindSemaphore || kind == driver.KindRWMutex && r.IntN(2) == 0,
			})
		}
		w.locks = append(w.locks, l)
	}
	w.owners = slices.DeleteFunc(names, func(name string) bool { return !w.waits(name) })
	return w
}

// waits reports whether the named owner waits for anything.
func (w *world) waits(name string) bool {
	return slices.ContainsFunc(w.locks, func(l driver.LockInfo) bool {
		return slices.ContainsFunc(l.Waiters, func(wait driver.Waiter) bool { return wait.Named && wait.Owner == name })
	})
}

// TestDeadlock_IsWhatNoOrderOfEventsCanEnd compares the search with one that tries every order, over small random
// lists.
func TestDeadlock_IsWhatNoOrderOfEventsCanEnd(t *testing.T) {
	seed := rand.Uint64()
	t.Logf("seed %d", seed)
	r := rand.New(rand.NewPCG(seed, 0))
	deadlocks := 0
	for range 20_000 {
		w := randomWorld(r)
		g, err := waitgraph.Listed(t.Context(), w.locks, core.Names.Waits)
		if err != nil {
			t.Fatal(err)
		}
		saved := w.saved()
		for n, owner := range w.owners { // both in the order of names
			if g.Free[n] != saved[owner] {
				t.Fatalf("seed %d: owner %s: may get on: the search says %v, trying says %v, of %+v", seed, owner,
					g.Free[n], saved[owner], w.locks)
			}
		}
		found := g.Cycle()
		if (len(found) > 0) != (len(saved) < len(w.owners)) {
			t.Fatalf("seed %d: the cycle %+v of %+v, where %v may get on", seed, found, w.locks, saved)
		}
		if len(found) > 0 {
			deadlocks++
			checkCycle(t, found)
		}
	}
	t.Logf("%d deadlocks", deadlocks)
	if deadlocks < 100 {
		t.Errorf("only %d deadlocks: the lists are no test", deadlocks)
	}
}

// checkCycle fails unless each owner of the cycle waits for the next, there are at least two, and none is there twice.
func checkCycle(t *testing.T, found []waitgraph.ListEdge) {
	t.Helper()
	seen := make(map[string]bool)
	for i, s := range found {
		if next := found[(i+1)%len(found)]; s.Next.What.Owner != next.What.Owner || seen[s.What.Owner] ||
			s.What.Owner < found[0].What.Owner {
			t.Fatalf("no cycle: %+v", found)
		}
		seen[s.What.Owner] = true
	}
	if len(found) < 2 {
		t.Fatalf("somebody waits for itself: %+v", found)
	}
}
