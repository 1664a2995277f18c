package interlocktest_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/interlocktest"
)

// A lock whose grant was lost on the way is released again, so that it does not stay held for a lease.
func TestStore_LoseReplies_OfAcquire_LeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := interlocktest.New(t, nil)
		locks, other := store.Client(nil), store.Client(nil)
		store.LoseReplies(interlocktest.OpAcquire, true)
		lease, err := locks.Lock(t.Context(), "x")
		if !errors.Is(err, interlock.ErrUnavailable) {
			t.Fatalf("got %v, %v", lease, err)
		}
		synctest.Wait() // until it is taken back
		store.LoseReplies(interlocktest.OpAcquire, false)
		next, err := other.TryLock(t.Context(), "x")
		if err != nil {
			t.Fatalf("a request without a reply has left something: %v", err)
		}
		if err := next.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		if got := store.Requests(interlocktest.OpRelease); got != 2 {
			t.Errorf("%d releases, want one that takes back and one of Unlock", got)
		}
	})
}

// The engine keeps the hold for up to a lease longer than its owner trusts it, because renewals still reach it and only
// the answers are lost.
func TestStore_LoseReplies_OfRenew_LosesTheHold_WhichOthersGetLater(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := interlocktest.New(t, nil)
		lease, err := store.Client(&interlock.Options{Lease: 30 * time.Second}).Lock(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		other := store.Client(nil)
		store.LoseReplies(interlocktest.OpRenew, true)
		select {
		case <-lease.Lost():
		case <-time.After(time.Hour):
			t.Fatal("replies that are lost do not end the trust")
		}
		var lost *interlock.LostError
		if !errors.As(lease.Err(), &lost) || lost.Reason != interlock.LostUnconfirmed {
			t.Errorf("got %v", lease.Err())
		}
		if store.Requests(interlocktest.OpRenew) == 0 {
			t.Error("no renewal was sent")
		}
		next, err := other.Lock(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		if err := next.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// A release is repeated until it is answered. What the first attempt has done counts as done.
func TestStore_LoseReplies_OfRelease_IsRepeatedUntilItIsKnown(t *testing.T) {
	for _, back := range []bool{true, false} {
		t.Run(fmt.Sprintf("back=%v", back), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				store := interlocktest.New(t, nil)
				lease, err := store.Client(nil).Lock(t.Context(), "x")
				if err != nil {
					t.Fatal(err)
				}
				store.LoseReplies(interlocktest.OpRelease, true)
				ctx, cancel := context.WithTimeout(t.Context(), time.Second)
				defer cancel()
				got := make(chan error, 1)
				go func() { got <- lease.Unlock(ctx) }()
				synctest.Wait()
				next, err := store.Client(nil).TryLock(t.Context(), "x")
				if err != nil {
					t.Fatalf("the release was not carried out: %v", err)
				}
				store.LoseReplies(interlocktest.OpRelease, !back)
				if err := <-got; back && err != nil || !back && !errors.Is(err, interlock.ErrUnavailable) {
					t.Errorf("Unlock: got %v", err)
				}
				store.LoseReplies(interlocktest.OpRelease, false)
				if err := next.Unlock(t.Context()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// Only a fence can refuse the writes of a process that stood still for longer than its lease.
func TestStore_Suspend_LetsTheNextInWhileTheFirstStillTrustsItsLease(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := interlocktest.New(t, nil)
		stopped, other := store.Client(nil), store.Client(nil)
		var guard fence.MemoryGuard
		older, err := stopped.Lock(t.Context(), "stock")
		if err != nil {
			t.Fatal(err)
		}
		beside, err := other.Lock(t.Context(), "of another process")
		if err != nil {
			t.Fatal(err)
		}
		store.Suspend(stopped, time.Hour)
		newer, err := other.TryLock(t.Context(), "stock")
		if err != nil {
			t.Fatal(err)
		}
		stamp, _ := newer.Stamp()
		if err := guard.Check("stock", stamp); err != nil {
			t.Error(err)
		}
		late, held := older.Stamp()
		if !held {
			t.Errorf("it knows already: %v", older.Err())
		}
		if err := guard.Check("stock", late); !errors.Is(err, fence.ErrStale) {
			t.Errorf("the fence: got %v", err)
		}
		<-older.Lost() // told by its next renewal
		var lost *interlock.LostError
		if !errors.As(older.Err(), &lost) || lost.Reason != interlock.LostTaken {
			t.Errorf("got %v", older.Err())
		}
		for _, lease := range []*interlock.Lease{newer, beside} {
			if err := lease.Unlock(t.Context()); err != nil {
				t.Error(err)
			}
		}
	})
}

// A pause that is shorter than the lease loses nothing.
func TestStore_Suspend_ForLessThanTheLease_IsNoLoss(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := interlocktest.New(t, nil)
		locks := store.Client(&interlock.Options{Lease: 30 * time.Second})
		lease, err := locks.Lock(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		store.Suspend(locks, 10*time.Second)
		info, err := locks.Look(t.Context(), interlock.KindMutex, "x")
		if err != nil || time.Until(info.Holders[0].Until) != 20*time.Second {
			t.Errorf("the engine's lease: got %+v, %v", info.Holders, err)
		}
		time.Sleep(time.Minute)
		if err := lease.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
	})
}

// The costs in requests that the documentation states.
func TestStore_Requests_CountsWhatAProgramCosts(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := interlocktest.New(t, nil)
		locks := store.Client(&interlock.Options{Lease: 30 * time.Second})
		want := func(when string, counts ...int) {
			t.Helper()
			for op, n := range counts {
				if got := store.Requests(interlocktest.Op(op)); got != n {
					t.Errorf("%s: %d requests of Op %d, want %d", when, got, op, n)
				}
			}
		}
		for range 3 {
			if err := locks.Do(t.Context(), "x", func(context.Context) error { return nil }); err != nil {
				t.Fatal(err)
			}
		}
		want("after three Do", 3, 0, 3, 0)
		lease, err := locks.Lock(t.Context(), "x")
		if err != nil {
			t.Fatal(err)
		}
		beside, err := locks.Lock(t.Context(), "beside") // renewed together with x
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(35 * time.Second) // a renewal of each every third of the lease
		want("after 35 seconds", 5, 6, 3, 0)
		if _, err := locks.Look(t.Context(), interlock.KindMutex, "x"); err != nil {
			t.Error(err)
		}
		want("after a look", 5, 6, 3, 1)
		store.SetDown(true)
		if _, err := locks.TryLock(t.Context(), "y"); !errors.Is(err, interlock.ErrUnavailable) {
			t.Errorf("got %v", err)
		}
		want("failed ones count", 6, 6)
		store.SetDown(false)
		if err := errors.Join(lease.Unlock(t.Context()), beside.Unlock(t.Context())); err != nil {
			t.Error(err)
		}
	})
}

// A wrong argument is a mistake in the test, and ends it with a message.
func TestStore_WrongArguments_EndTheTest(t *testing.T) {
	foreign := interlocktest.New(t, nil).Client(nil)
	for name, call := range map[string]func(*interlocktest.Store){
		"a client of another store": func(s *interlocktest.Store) { s.Suspend(foreign, time.Second) },
		"no time":                   func(s *interlocktest.Store) { s.Suspend(s.Client(nil), 0) },
		"an Op that there is not":   func(s *interlocktest.Store) { s.LoseReplies(17, true) },
		"and one to count":          func(s *interlocktest.Store) { _ = s.Requests(17) },
	} {
		t.Run(name, func(t *testing.T) {
			r := &recorder{TB: t}
			s := interlocktest.New(r, nil)
			done := make(chan struct{})
			go func() {
				defer close(done)
				call(s)
			}()
			<-done
			if r.fatal == "" {
				t.Error("it passed")
			}
			r.end()
		})
	}
}
