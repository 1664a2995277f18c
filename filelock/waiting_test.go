//go:build linux && (amd64 || arm64)

package filelock

import (
	"context"
	"errors"
	"os"
	"os/signal"
	"runtime"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// prompt is how fast a method must return once its context has ended.
const prompt = 50 * time.Millisecond

func kernelWaits(t *testing.T) {
	t.Helper()
	if newInterrupter() == nil {
		skip(t, "waits poll on this architecture")
	}
}

func TestAcquire_WhoseContextEnds_ReturnsPromptlyAndLeavesNothing(t *testing.T) {
	kernelWaits(t)
	d := open(t, t.TempDir())
	holder := newID()
	mustTry(t, d, holder, "x")
	goroutines, files, threads := runtime.NumGoroutine(), descriptors(t), 0
	const rounds, waiters = 20, 3
	slow := 0
	for round := range rounds {
		var all []*waitingAcquire
		for range waiters { // one stands at the flock, the others at the turnstile
			all = append(all, startWaiting(t, d, newID(), "x"))
		}
		eventually(t, "all sleep in the kernel", func() bool { return sleepingThreads(t) == waiters })
		for _, w := range all {
			start := time.Now()
			w.cancel()
			if o := w.end(t); !errors.Is(o.err, context.Canceled) {
				t.Fatalf("got %+v", o)
			}
			if time.Since(start) > prompt {
				slow++
			}
		}
		if n := sleepingThreads(t); n != 0 {
			t.Fatalf("%d threads still sleep", n)
		}
		if round == 0 {
			threads = countThreads(t)
		}
	}
	if slow > rounds*waiters/4 { // a busy machine may let this test itself wait
		t.Errorf("%d of %d took longer than %v", slow, rounds*waiters, prompt)
	}
	eventually(t, "the goroutines have ended", func() bool { return runtime.NumGoroutine() <= goroutines })
	if n := descriptors(t); n > files {
		t.Errorf("%d descriptors, %d before", n, files)
	}
	// The runtime keeps threads for later use, and makes more on a busy machine. But there must not be one for each
	// wait.
	if n := countThreads(t); n > threads+rounds {
		t.Errorf("%d threads, %d after the first round", n, threads)
	}
	release(t, d, holder, "x")
	mustTry(t, d, newID(), "x")
}

// The signal may come before the thread is in the system call. Contexts that end at about that moment must not be
// missed.
func TestAcquire_WhoseContextEndsAsTheWaitBegins_ReturnsPromptly(t *testing.T) {
	d := open(t, t.TempDir())
	mustTry(t, d, newID(), "x")
	const rounds = 300
	var slow []time.Duration
	for i := range rounds {
		ctx, cancel := context.WithCancel(context.Background())
		r := request(newID(), "x")
		r.Waiting = func(*driver.HeldError) {
			go func() {
				spin(time.Duration(i%60) * time.Microsecond)
				cancel()
			}()
		}
		start := time.Now()
		if _, err := d.Acquire(ctx, r); !errors.Is(err, context.Canceled) {
			t.Fatalf("got %v", err)
		}
		if took := time.Since(start); took > 2*prompt {
			slow = append(slow, took)
		}
	}
	if len(slow) > rounds/10 { // as above
		t.Errorf("%d of %d rounds took longer than %v: %v", len(slow), rounds, 2*prompt, slow)
	}
}

// onceWithin fails the test unless act takes no longer than limit in at least one round. A busy machine may delay the
// test itself, but not in every round.
func onceWithin(t *testing.T, limit time.Duration, act func() (took time.Duration)) {
	t.Helper()
	var all []time.Duration
	for range 10 {
		took := act()
		if took <= limit {
			return
		}
		all = append(all, took)
	}
	t.Errorf("it never took less than %v: %v", limit, all)
}

// early is a stage whose first signal comes before its thread is in the system call.
func early(cancel func(), then func() error) stage {
	return stage{block: func() error {
		cancel()
		spin(10 * firstResend) // for longer than the signal takes
		return then()
	}}
}

func TestSleeper_WhoseFirstSignalComesTooEarly_EndsAllTheSame(t *testing.T) {
	kernelWaits(t)
	d := open(t, t.TempDir())
	mustTry(t, d, newID(), "x")
	f := openFile(t, d, "x")
	onceWithin(t, 2*prompt, func() time.Duration {
		ctx, cancel := context.WithCancel(context.Background())
		defer cancel()
		w := d.newWaiter(ctx)
		start := time.Now()
		err := w.wait(ctx, early(cancel, f.awaitLock))
		took := time.Since(start)
		w.stop()
		if !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
		return took
	})
}

func TestAcquire_WithACauseOfTheCallers_ReturnsTheContextsError(t *testing.T) {
	d := open(t, t.TempDir())
	mustTry(t, d, newID(), "x")
	ctx, cancel := context.WithCancelCause(context.Background())
	r := request(newID(), "x")
	r.Waiting = func(*driver.HeldError) { cancel(errors.New("the caller's cause")) }
	if _, err := d.Acquire(ctx, r); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v", err)
	}
}

func TestAcquire_AfterTheProgramIgnoredAllSignals_StillEndsWithItsContext(t *testing.T) {
	rerun(t, nil, func(t *testing.T) {
		d := open(t, t.TempDir())
		mustTry(t, d, newID(), "x")
		for _, change := range []func(){
			func() {},
			func() { signal.Ignore() },
			func() { signal.Notify(make(chan os.Signal, 100)) },
			func() { signal.Ignore(topSignal) },
			func() { signal.Reset() },
		} {
			w := startWaiting(t, d, newID(), "x")
			change()
			w.cancel()
			if o := w.end(t); !errors.Is(o.err, context.Canceled) {
				t.Errorf("got %+v", o)
			}
		}
	})
}

func TestAcquire_WithTheSignalBlockedByTheParent_StillEndsWithItsContext(t *testing.T) {
	rerun(t, nil, func(t *testing.T) {
		runtime.LockOSThread() // the mask is the thread's
		blockSignals(t)
		d := open(t, t.TempDir())
		mustTry(t, d, newID(), "x")
		ctx, cancel := context.WithCancel(context.Background())
		r := request(newID(), "x")
		r.Waiting = func(*driver.HeldError) { time.AfterFunc(5*time.Millisecond, cancel) }
		if _, err := d.Acquire(ctx, r); !errors.Is(err, context.Canceled) {
			t.Errorf("got %v", err)
		}
	})
}

func TestAcquire_BeyondTheBoundOfSleepers_Polls(t *testing.T) {
	d := open(t, t.TempDir())
	d.sleepers.Store(maxSleepers)
	holder := newID()
	mustTry(t, d, holder, "x")
	onceWithin(t, prompt, func() time.Duration {
		cancelled := startWaiting(t, d, newID(), "x")
		start := time.Now()
		cancelled.cancel()
		if o := cancelled.end(t); !errors.Is(o.err, context.Canceled) {
			t.Errorf("got %+v", o)
		}
		return time.Since(start)
	})
	w := startWaiting(t, d, newID(), "x")
	release(t, d, holder, "x")
	if o := w.end(t); o.err != nil {
		t.Error(o.err)
	}
	if n := d.sleepers.Load(); n != maxSleepers {
		t.Errorf("%d sleepers are counted, want %d", n, maxSleepers)
	}
}

func TestTry_OfAFreeLockForWhichSomebodyWaits_Fails(t *testing.T) {
	d := open(t, t.TempDir())
	f := openFile(t, d, "x")
	f.joinLine() // a waiter that is on its way from the turnstile to the flock
	_, err := try(d, newID(), "x")
	var held *driver.HeldError
	if !errors.As(err, &held) || held.Owner != "" {
		t.Errorf("got %v, want held by nobody known", err)
	}
	f.leaveLine()
	mustTry(t, d, newID(), "x")
}

func TestAcquire_BehindAWaiter_AfterItsTurn_DoesNotOvertakeIt(t *testing.T) {
	d := open(t, t.TempDir())
	for range 20 {
		holder, again := newID(), newID()
		mustTry(t, d, holder, "x")
		w := startWaiting(t, d, newID(), "x")
		f := openFile(t, d, "x")
		eventually(t, "the waiter stands at the turnstile", func() bool { return marked(f.fd, turnstile, 1) })
		eventually(t, "the holder's turn is over", func() bool {
			d.mu.Lock()
			defer d.mu.Unlock()
			return time.Since(d.attempts[holder].file.turn.began) > d.pace.turn
		})
		release(t, d, holder, "x")
		g, err := d.Acquire(withTimeout(t, 20*time.Millisecond), request(again, "x"))
		if err == nil {
			t.Fatalf("the releaser got in again (token %d) before the waiter was served", g.Token)
		}
		o := w.end(t)
		if o.err != nil {
			t.Fatal(o.err)
		}
		if err := d.Release(context.Background(), &driver.Release{Key: mutex("x"), ID: o.grant.Nonce}); err != nil {
			t.Fatal(err)
		}
		f.close()
	}
}

func TestClose_EndsWaitsAndHoldsAndLeavesNothing(t *testing.T) {
	goroutines, files := runtime.NumGoroutine(), descriptors(t)
	dir := t.TempDir()
	d, other := open(t, dir), open(t, dir)
	mustTry(t, d, newID(), "a")
	used := newID()
	mustTry(t, d, used, "idle")
	release(t, d, used, "idle")
	var all []*waitingAcquire
	for range 4 {
		all = append(all, startWaiting(t, d, newID(), "a"))
	}
	if err := d.Close(); err != nil {
		t.Fatal(err)
	}
	for _, w := range all {
		if o := w.end(t); !errors.Is(o.err, driver.ErrClosed) || !driver.IsDefinite(o.err) {
			t.Errorf("a waiter got %+v", o)
		}
	}
	mustTry(t, other, newID(), "a")
	if _, err := try(d, newID(), "a"); !errors.Is(err, driver.ErrClosed) {
		t.Errorf("try on the closed driver: %v", err)
	}
	if err := d.Close(); err != nil {
		t.Error(err)
	}
	_ = other.Close()
	eventually(t, "the goroutines have ended", func() bool { return runtime.NumGoroutine() <= goroutines })
	if n := descriptors(t); n > files { // fewer are no fault: what another test has left goes when it is collected
		t.Errorf("%d descriptors, %d before", n, files)
	}
	if n := sleepingThreads(t); n != 0 {
		t.Errorf("%d threads sleep", n)
	}
}

func TestClose_DuringManyAcquires_LeavesNothingHeld(t *testing.T) {
	dir := t.TempDir()
	for range 20 {
		d := open(t, dir)
		done := make(chan struct{}, 8)
		for range cap(done) {
			go func() {
				defer func() { done <- struct{}{} }()
				for {
					id := newID()
					if _, err := d.Acquire(context.Background(), request(id, "x")); err != nil {
						return
					}
					// may have ended with Close
					_ = d.Release(context.Background(), &driver.Release{Key: mutex("x"), ID: id})
				}
			}()
		}
		spin(200 * time.Microsecond)
		_ = d.Close()
		other := open(t, dir)
		mustTry(t, other, newID(), "x")
		_ = other.Close()
		for range cap(done) {
			<-done
		}
	}
}
