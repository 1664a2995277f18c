package faulty_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/memlock"
)

var key = driver.Key{Kind: driver.KindMutex, Name: "x"}

func ask(id string) *driver.Request {
	return &driver.Request{Key: key, ID: id, Weight: 1, Tokens: 1, Lease: time.Minute}
}

// world is a store with a healthy client and one behind faults.
type world struct {
	*testing.T
	healthy, bad driver.Driver
	c            *faulty.Control
}

// in runs f in virtual time.
func in(t *testing.T, f func(w *world), rules ...faulty.Rule) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		store := memlock.New(nil)
		w := &world{T: t, healthy: store}
		w.bad, w.c = faulty.Wrap(store.Peer(), 1, rules...)
		defer store.Close()
		defer w.bad.Close()
		f(w)
	})
}

// call runs f with a context of a second and returns how long it took and its error.
func (w *world) call(f func(context.Context) error) (time.Duration, error) {
	ctx, cancel := context.WithTimeout(w.Context(), time.Second)
	defer cancel()
	start := time.Now()
	err := f(ctx)
	return time.Since(start), err
}

func (w *world) acquire(id string) (time.Duration, error) {
	return w.call(func(ctx context.Context) error {
		_, err := w.bad.Acquire(ctx, ask(id))
		return err
	})
}

func (w *world) release(id string) (time.Duration, error) {
	return w.call(func(ctx context.Context) error {
		return w.bad.Release(ctx, &driver.Release{Key: key, ID: id})
	})
}

func (w *world) isHeld() bool {
	w.Helper()
	try := ask(fmt.Sprintf("probe at %d", time.Now().UnixNano()))
	try.Try = true
	try.ID += fmt.Sprint(w.c.Calls(faulty.Acquire), w.c.Calls(faulty.Release))
	_, err := w.healthy.Acquire(w.Context(), try)
	if err == nil {
		if err := w.healthy.Release(w.Context(), &driver.Release{Key: key, ID: try.ID}); err != nil {
			w.Fatal(err)
		}
	}
	return err != nil
}

func (w *world) took(got, want time.Duration) {
	w.Helper()
	if got != want {
		w.Errorf("the call took %v, want %v", got, want)
	}
}

func (w *world) says(err, want error) {
	w.Helper()
	if !errors.Is(err, want) {
		w.Errorf("the call says %v, want %v", err, want)
	}
}

func TestNoRule_DisturbsNothing(t *testing.T) {
	in(t, func(w *world) {
		d, err := w.acquire("a")
		w.took(d, 0)
		w.says(err, nil)
		_, err = w.release("a")
		w.says(err, nil)
		if w.isHeld() {
			w.Error("the lock is held")
		}
	})
}

func TestDroppedRequest_NeverHappens(t *testing.T) {
	in(t, func(w *world) {
		d, err := w.acquire("a")
		w.took(d, 0)
		w.says(err, driver.ErrUnavailable)
		if w.isHeld() {
			w.Error("the lock is held")
		}
	}, faulty.Rule{Op: faulty.Acquire, Drop: faulty.Request})
}

func TestDroppedReply_HasHappened(t *testing.T) {
	in(t, func(w *world) {
		_, err := w.acquire("a")
		w.says(err, driver.ErrUnavailable)
		if !w.isHeld() {
			w.Error("the lock is free")
		}
		_, err = w.acquire("a")
		w.says(err, nil)
	}, faulty.Rule{Op: faulty.Acquire, Count: 1, Drop: faulty.Reply})
}

func TestHangingDrop_EndsWithTheContext(t *testing.T) {
	in(t, func(w *world) {
		d, err := w.acquire("a")
		w.took(d, time.Second)
		w.says(err, driver.ErrUnavailable)
		w.says(err, context.DeadlineExceeded)
	}, faulty.Rule{Drop: faulty.Reply, Hang: true})
}

func TestDelays_AddUp(t *testing.T) {
	in(t, func(w *world) {
		d, err := w.acquire("a")
		w.took(d, 300*time.Millisecond)
		w.says(err, nil)
	}, faulty.Rule{Before: 100 * time.Millisecond, After: 200 * time.Millisecond})
}

func TestDelayBeyondTheContext_IsUnavailable(t *testing.T) {
	in(t, func(w *world) {
		d, err := w.acquire("a")
		w.took(d, time.Second)
		w.says(err, driver.ErrUnavailable)
		if w.isHeld() {
			w.Error("a request that was still on its way has happened")
		}
	}, faulty.Rule{Before: time.Hour})
}

func TestNthCall_AloneFails(t *testing.T) {
	down := errors.New("down")
	in(t, func(w *world) {
		for i := 1; i <= 5; i++ {
			id := fmt.Sprint(i)
			var want error
			if i == 3 {
				want = down
			}
			_, err := w.acquire(id)
			w.says(err, want)
			if err == nil {
				_, _ = w.release(id)
			}
		}
		if n := w.c.Calls(faulty.Acquire); n != 5 {
			w.Errorf("%d calls counted, want 5", n)
		}
	}, faulty.Rule{Op: faulty.Acquire, From: 3, Count: 1, Err: down})
}

func TestRule_IsForItsLockAlone(t *testing.T) {
	in(t, func(w *world) {
		_, err := w.acquire("a")
		w.says(err, nil)
	}, faulty.Rule{Name: "y", Drop: faulty.Request})
}

func TestChance_IsTheSameForTheSameSeed(t *testing.T) {
	run := func(seed uint64) (outcome string) {
		d, _ := faulty.Wrap(memlock.New(nil), seed, faulty.Rule{Op: faulty.Acquire, Chance: 0.5, Drop: faulty.Request})
		defer d.Close()
		for i := range 64 {
			id := fmt.Sprint(i)
			if _, err := d.Acquire(t.Context(), ask(id)); err != nil {
				outcome += "x"
				continue
			}
			outcome += "."
			if err := d.Release(t.Context(), &driver.Release{Key: key, ID: id}); err != nil {
				t.Fatal(err)
			}
		}
		return outcome
	}
	if a, b := run(1), run(1); a != b {
		t.Errorf("seed 1 gave %s and %s", a, b)
	}
	if a, b := run(1), run(2); a == b {
		t.Errorf("seeds 1 and 2 gave %s", a)
	}
}

// A call that has begun before the network goes down is as cut off as one that begins later.
func TestStandingRule_ConcernsCallsThatAreUnderWay(t *testing.T) {
	why := errors.New("the cable is out")
	in(t, func(w *world) {
		if _, err := w.healthy.Acquire(w.Context(), ask("holder")); err != nil {
			w.Fatal(err)
		}
		waited := make(chan error, 1)
		go func() {
			_, err := w.acquire("waiter")
			waited <- err
		}()
		synctest.Wait()
		w.c.Rules(faulty.Rule{Standing: true, Op: faulty.Acquire, Drop: faulty.Reply, Err: why})
		if err := w.healthy.Release(w.Context(), &driver.Release{Key: key, ID: "holder"}); err != nil {
			w.Fatal(err)
		}
		if err := <-waited; !errors.Is(err, driver.ErrUnavailable) || !errors.Is(err, why) {
			w.Errorf("the one that waited: %v", err)
		}
		if !w.isHeld() {
			w.Error("what the reply told has not happened")
		}
		w.c.Rules(faulty.Rule{Standing: true, Drop: faulty.Request})
		_, err := w.release("waiter")
		w.says(err, driver.ErrUnavailable)
		if !w.isHeld() {
			w.Error("a request that was lost has happened")
		}
		w.c.Rules()
		_, err = w.release("waiter")
		w.says(err, nil)
	})
}

func TestCalls_CountEachRenewalOfABatch(t *testing.T) {
	in(t, func(w *world) {
		w.bad.(driver.Renewer).Renew(w.Context(), make([]driver.Renewal, 3), func(int, error) {})
		if n := w.c.Calls(faulty.Renew); n != 3 {
			w.Errorf("%d calls, want 3", n)
		}
	})
}

func TestCopy_ArrivesLater(t *testing.T) {
	in(t, func(w *world) {
		_, err := w.acquire("a")
		w.says(err, nil)
		_, err = w.release("a")
		w.says(err, nil)
		time.Sleep(2 * time.Second)
		if n := w.c.Calls(faulty.Acquire); n != 1 {
			w.Errorf("the copy is counted as a call: %d", n)
		}
		if w.isHeld() {
			w.Error("the copy of a released request took the lock")
		}
	}, faulty.Rule{Op: faulty.Acquire, Copy: time.Second})
}

func TestCopyOfARelease_HasItsEffect(t *testing.T) {
	in(t, func(w *world) {
		_, err := w.release("a") // finds nothing yet
		w.says(err, driver.ErrLost)
		_, err = w.acquire("a")
		w.says(err, nil)
		time.Sleep(2 * time.Second)
		if w.isHeld() {
			w.Error("the copy of the release did not arrive")
		}
	}, faulty.Rule{Op: faulty.Release, Copy: time.Second})
}

func TestClose_EndsCopiesThatAreUnderWay(t *testing.T) {
	in(t, func(w *world) {
		_, err := w.acquire("a")
		w.says(err, nil)
		start := time.Now()
		if err := w.bad.Close(); err != nil {
			w.Fatal(err)
		}
		w.took(time.Since(start), 0)
	}, faulty.Rule{Copy: time.Hour})
}

func TestPause_HoldsUpCallsUntilResume(t *testing.T) {
	in(t, func(w *world) {
		w.c.Pause()
		d, err := w.acquire("a")
		w.took(d, time.Second)
		w.says(err, context.DeadlineExceeded)
		w.says(err, driver.ErrUnavailable)
		if w.isHeld() {
			w.Error("a request reached a hanging server")
		}
		time.AfterFunc(500*time.Millisecond, w.c.Resume)
		d, err = w.acquire("b")
		w.took(d, 500*time.Millisecond)
		w.says(err, nil)
	})
}

func TestPause_HoldsUpTheReplyOfAWaitAndItsCallbacks(t *testing.T) {
	in(t, func(w *world) {
		_, err := w.healthy.Acquire(w.Context(), ask("holder"))
		w.says(err, nil)
		r := ask("a")
		lost := make(chan driver.LostReason, 1)
		r.Lost = func(reason driver.LostReason, _ error) { lost <- reason }
		granted := make(chan driver.Grant, 1)
		go func() {
			g, err := w.bad.Acquire(w.Context(), r)
			w.says(err, nil)
			granted <- g
		}()
		synctest.Wait()
		w.c.Pause()
		w.says(w.healthy.Release(w.Context(), &driver.Release{Key: key, ID: "holder"}), nil)
		synctest.Wait()
		if len(granted) != 0 {
			w.Fatal("the reply came through a hanging server")
		}
		if !w.isHeld() {
			w.Fatal("the lock was not granted behind the hanging reply")
		}
		w.c.Resume()
		g := <-granted
		w.c.Pause()
		w.says(w.healthy.(driver.Breaker).Break(w.Context(), key, g.Token), nil)
		synctest.Wait()
		if len(lost) != 0 {
			w.Fatal("a callback came through a hanging server")
		}
		w.c.Resume()
		if reason := <-lost; reason != driver.LostBroken {
			w.Errorf("lost: %q", reason)
		}
	})
}

func TestPause_HoldsUpThatAnotherWantsTheLock(t *testing.T) {
	in(t, func(w *world) {
		r := ask("a")
		wanted := 0
		r.Retains, r.Wanted = true, func() { wanted++ }
		_, err := w.bad.Acquire(w.Context(), r)
		w.says(err, nil)
		w.c.Pause()
		if !w.isHeld() { // and so somebody has asked for it
			w.Fatal("the lock is free")
		}
		synctest.Wait()
		if wanted != 0 {
			w.Fatal("a callback came through a hanging server")
		}
		w.c.Resume()
		synctest.Wait()
		if wanted != 1 {
			w.Errorf("after Resume the holder was told %d times that another wants the lock, want once", wanted)
		}
	})
}

func TestRenew_AnswersEachOnceWhateverIsLost(t *testing.T) {
	for _, part := range []faulty.Part{0, faulty.Request, faulty.Reply} {
		in(t, func(w *world) {
			_, err := w.acquire("a")
			w.says(err, nil)
			batch := []driver.Renewal{{Key: key, ID: "a", Lease: time.Hour}, {Key: key, ID: "b", Lease: time.Hour}}
			answers := make(map[int][]error)
			w.bad.(driver.Renewer).Renew(w.Context(), batch, func(i int, err error) {
				answers[i] = append(answers[i], err)
			})
			want := []error{nil, driver.ErrLost}
			if part != 0 {
				want = []error{driver.ErrUnavailable, driver.ErrUnavailable}
			}
			for i := range batch {
				if len(answers[i]) != 1 || !errors.Is(answers[i][0], want[i]) {
					w.Errorf("with part %d lost, entry %d is answered %v, want %v", part, i, answers[i], want[i])
				}
			}
			time.Sleep(30 * time.Minute)
			if renewed := w.isHeld(); renewed != (part != faulty.Request) {
				w.Errorf("with part %d lost, renewed: %v", part, renewed)
			}
		}, faulty.Rule{Op: faulty.Renew, Drop: part})
	}
}

func TestLocksAndBreak_AreDisturbedToo(t *testing.T) {
	in(t, func(w *world) {
		for _, err := range w.bad.(driver.Inspector).Locks(w.Context(), "") {
			w.says(err, driver.ErrUnavailable)
		}
		w.says(w.bad.(driver.Breaker).Break(w.Context(), key, 1), driver.ErrUnavailable)
		w.c.Rules()
		w.says(w.bad.(driver.Breaker).Break(w.Context(), key, 1), driver.ErrNotHeld)
		for _, err := range w.bad.(driver.Inspector).Locks(w.Context(), "") {
			w.says(err, nil)
		}
	}, faulty.Rule{Drop: faulty.Request})
}
