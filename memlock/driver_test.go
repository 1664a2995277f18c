package memlock

import (
	"context"
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// lease is the usual lease of the tests below.
const lease = 10 * time.Second

func ask(id string) *driver.Request {
	return &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: "m"}, ID: id, Client: "host:" + id, Lease: lease, Weight: 1,
		Tokens: 1,
	}
}

func give(id string) *driver.Release { return &driver.Release{Key: ask(id).Key, ID: id} }

func mustAcquire(t *testing.T, d *Driver, r *driver.Request) driver.Grant {
	t.Helper()
	g, err := d.Acquire(t.Context(), r)
	if err != nil {
		t.Fatalf("Acquire(%s): %v", r.ID, err)
	}
	return g
}

// result is what the Acquire of a waiting goroutine returned.
type result struct {
	grant driver.Grant
	err   error
	at    time.Time
}

// wait acquires in a goroutine, and returns when all goroutines of the bubble are blocked.
func wait(ctx context.Context, d *Driver, r *driver.Request) <-chan result {
	done := make(chan result, 1)
	go func() {
		g, err := d.Acquire(ctx, r)
		done <- result{g, err, time.Now()}
	}()
	synctest.Wait()
	return done
}

func renewed(t *testing.T, d *Driver, id string) error {
	t.Helper()
	answers := 0
	var answer error
	d.Renew(t.Context(), []driver.Renewal{{Key: ask(id).Key, ID: id, Lease: lease}}, func(_ int, err error) {
		answers, answer = answers+1, err
	})
	if answers != 1 {
		t.Fatalf("Renew answered %d times", answers)
	}
	return answer
}

func infos(t *testing.T, d *Driver, prefix string) []driver.LockInfo {
	t.Helper()
	var all []driver.LockInfo
	for info, err := range d.Locks(t.Context(), prefix) {
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, info)
	}
	return all
}

// idle fails t if the store has a timer set, or a request waits.
func idle(t *testing.T, d *Driver) {
	t.Helper()
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	if d.store.timer != nil || len(d.store.calls) > 0 || d.store.q.queued > 0 {
		t.Errorf("left behind: timer %v, %d calls, %d queued", d.store.timer != nil, len(d.store.calls),
			d.store.q.queued)
	}
}

func TestAcquire_WhenTheHoldersLeaseEnds_WakesTheWaiterAtThatInstant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		defer d.Close()
		first := mustAcquire(t, d, ask("a"))
		end := time.Now().Add(lease)
		var told *driver.HeldError
		r := ask("b")
		r.Waiting = func(e *driver.HeldError) { told = e }
		got := <-wait(t.Context(), d.Peer(), r)
		if got.err != nil || !got.at.Equal(end) {
			t.Fatalf("granted at %v with %v, want %v", got.at, got.err, end)
		}
		if !got.grant.Sent.Equal(end) || got.grant.Lease != lease || got.grant.Token <= first.Token {
			t.Errorf("got %+v, want Sent %v, Lease %v and a token above %d", got.grant, end, lease, first.Token)
		}
		if told == nil || told.Client != "host:a" || !told.Until.Equal(end) {
			t.Errorf("it was told that %v was in the way", told)
		}
		var lost *driver.LostError
		if err := renewed(t, d, "a"); !errors.As(err, &lost) || lost.Reason != driver.LostTaken {
			t.Errorf("renewal of the first: %v, want that it was taken", err)
		}
		idle(t, d)
	})
}

func TestAcquire_WhenTheHolderRenews_WaitsForTheNewEnd(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		mustAcquire(t, d, ask("a"))
		done := wait(t.Context(), d, ask("b"))
		time.Sleep(7 * time.Second)
		if err := renewed(t, d, "a"); err != nil {
			t.Fatal(err)
		}
		end := time.Now().Add(lease)
		if got := <-done; got.err != nil || !got.at.Equal(end) {
			t.Errorf("granted at %v with %v, want %v", got.at, got.err, end)
		}
		idle(t, d)
	})
}

func TestAcquire_WhenAnotherLeaseIsWaitedForAlready_WakesAtTheEarlierOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		long, longWaiter := ask("long"), ask("long waiter")
		long.Name, longWaiter.Name = "other", "other"
		long.Lease = time.Hour
		mustAcquire(t, d, long)
		later := wait(t.Context(), d, longWaiter)
		begin := time.Now()
		mustAcquire(t, d, ask("a"))
		if got := <-wait(t.Context(), d, ask("b")); got.err != nil || !got.at.Equal(begin.Add(lease)) {
			t.Errorf("granted after %v with %v, want %v", got.at.Sub(begin), got.err, lease)
		}
		shorter := &driver.Release{Key: long.Key, ID: long.ID, Keep: 5 * time.Second}
		if err := d.Release(t.Context(), shorter); err != nil {
			t.Fatal(err)
		}
		if got := <-later; got.err != nil || !got.at.Equal(begin.Add(lease+5*time.Second)) {
			t.Errorf("granted after %v with %v, want %v", got.at.Sub(begin), got.err, lease+5*time.Second)
		}
		idle(t, d)
	})
}

func TestAcquire_AfterALongWait_CountsItsLeaseFromTheGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		mustAcquire(t, d, ask("a"))
		done := wait(t.Context(), d, ask("b"))
		time.Sleep(6 * time.Second)
		now := time.Now()
		if err := d.Release(t.Context(), give("a")); err != nil {
			t.Fatal(err)
		}
		if got := <-done; got.err != nil || !got.grant.Sent.Equal(now) || !got.at.Equal(now) {
			t.Errorf("got %+v, want Sent %v", got, now)
		}
		if until := infos(t, d, "")[0].Holders[0].Until; !until.Equal(now.Add(lease)) {
			t.Errorf("the lease lasts until %v, want %v", until, now.Add(lease))
		}
	})
}

func TestAcquire_WhenItsContextEnds_ReturnsAtOnceAndLeavesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		mustAcquire(t, d, ask("a"))
		ctx, cancel := context.WithTimeout(t.Context(), 3*time.Second)
		defer cancel()
		r := ask("b")
		done := wait(ctx, d, r)
		next := wait(t.Context(), d, ask("c"))
		want := time.Now().Add(3 * time.Second)
		got := <-done
		if !errors.Is(got.err, context.DeadlineExceeded) || driver.IsDefinite(got.err) || !got.at.Equal(want) {
			t.Errorf("got %v at %v, want the deadline's error at %v", got.err, got.at, want)
		}
		if err := d.Release(t.Context(), give("a")); err != nil {
			t.Fatal(err)
		}
		if got := <-next; got.err != nil || !got.at.Equal(want) {
			t.Errorf("the one behind was granted at %v with %v, want %v", got.at, got.err, want)
		}
		idle(t, d)
	})
}

func TestAcquire_WithAContextThatHasEnded_TakesNothing(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	d := New(nil)
	if _, err := d.Acquire(ctx, ask("a")); !errors.Is(err, context.Canceled) {
		t.Errorf("got %v, want the context's error", err)
	}
	if n := len(infos(t, d, "")); n != 0 {
		t.Errorf("%d in use", n)
	}
}

func TestAcquire_CancelledAtTheInstantOfTheGrant_IsGrantedOrLeavesNothing(t *testing.T) {
	for range 200 {
		synctest.Test(t, func(t *testing.T) {
			d := New(nil)
			mustAcquire(t, d, ask("a"))
			ctx, cancel := context.WithTimeout(t.Context(), lease) // the very instant at which a's lease ends
			defer cancel()
			got := <-wait(ctx, d, ask("b"))
			in := len(infos(t, d, "m"))
			if (got.err == nil) != (in == 1) {
				t.Fatalf("Acquire returned %v, but %d are in use", got.err, in)
			}
			idle(t, d)
		})
	}
}

func TestAcquire_WhileItWaits_HearsOfEachNewHolder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		mustAcquire(t, d, ask("a"))
		var told []string
		last := ask("d")
		last.Waiting = func(e *driver.HeldError) { told = append(told, e.Client) }
		b, c, end := wait(t.Context(), d, ask("b")), wait(t.Context(), d, ask("c")), wait(t.Context(), d, last)
		for _, id := range []string{"a", "b", "c"} {
			if err := d.Release(t.Context(), give(id)); err != nil {
				t.Fatal(err)
			}
			synctest.Wait()
		}
		for _, done := range []<-chan result{b, c, end} {
			if got := <-done; got.err != nil {
				t.Fatal(got.err)
			}
		}
		if want := []string{"host:a", "host:b", "host:c"}; !slices.Equal(told, want) {
			t.Errorf("it was told of %q, want %q", told, want)
		}
	})
}

func TestAcquire_CopiesOfOneRequest_ShareAPlace(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		mustAcquire(t, d, ask("a"))
		ctx, cancel := context.WithCancel(t.Context())
		one, two := wait(ctx, d, ask("b")), wait(t.Context(), d, ask("b"))
		if n := len(infos(t, d, "")[0].Waiters); n != 1 {
			t.Fatalf("%d wait, want 1", n)
		}
		cancel()
		if got := <-one; !errors.Is(got.err, context.Canceled) {
			t.Errorf("the one that was cancelled: %v", got.err)
		}
		if err := d.Release(t.Context(), give("a")); err != nil {
			t.Fatal(err)
		}
		if got := <-two; got.err != nil {
			t.Errorf("the other: %v", got.err)
		}
	})
}

// Traits.Local promises this, although the engine has a queue.
func TestTryRenewAndRelease_WhileAnotherWaits_DoNotBlock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		defer idle(t, d)
		mustAcquire(t, d, ask("a"))
		waiter := wait(t.Context(), d, ask("b"))
		try, start := ask("c"), time.Now()
		try.Try = true
		if _, err := d.Acquire(t.Context(), try); !errors.Is(err, driver.ErrHeld) {
			t.Errorf("a try returned %v, want ErrHeld", err)
		}
		if err := renewed(t, d, "a"); err != nil {
			t.Errorf("a renewal returned %v", err)
		}
		if err := d.Release(t.Context(), give("a")); err != nil {
			t.Errorf("a release returned %v", err)
		}
		if took := time.Since(start); took != 0 {
			t.Errorf("they took %v, want no time at all", took)
		}
		if got := <-waiter; got.err != nil {
			t.Errorf("the waiter returned %v", got.err)
		}
		if err := d.Release(t.Context(), give("b")); err != nil {
			t.Error(err)
		}
	})
}

func TestUndo_OfAWait_EndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		mustAcquire(t, d, ask("a"))
		done := wait(t.Context(), d, ask("b"))
		undo := give("b")
		undo.Undo = true
		if err := d.Peer().Release(t.Context(), undo); err != nil {
			t.Fatal(err)
		}
		if got := <-done; !errors.Is(got.err, driver.ErrLost) {
			t.Errorf("got %v, want ErrLost", got.err)
		}
		idle(t, d)
	})
}

func TestRequeue_GivesItToTheWaiterAndComesBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		mustAcquire(t, d, ask("a"))
		next := wait(t.Context(), d.Peer(), ask("b"))
		back := make(chan result, 1)
		go func() {
			g, err := d.Requeue(t.Context(), give("a"), ask("c"))
			back <- result{g, err, time.Now()}
		}()
		b := <-next
		if b.err != nil {
			t.Fatal(b.err)
		}
		synctest.Wait()
		if err := d.Release(t.Context(), give("b")); err != nil {
			t.Fatal(err)
		}
		if c := <-back; c.err != nil || c.grant.Token <= b.grant.Token {
			t.Errorf("got %+v, want a token above %d", c, b.grant.Token)
		}
	})
}

func TestBreak_TellsTheHolderAfterItHasTakenEffect(t *testing.T) {
	d := New(nil)
	r := ask("a")
	r.Tokens = 8
	var told []driver.LostReason
	var releasing error
	r.Lost = func(reason driver.LostReason, _ error) {
		told = append(told, reason)
		releasing = d.Release(t.Context(), give("a")) // would hang if the store's mutex were held
	}
	g := mustAcquire(t, d, r)
	if err := d.Peer().Break(t.Context(), r.Key, g.Token+uint64(g.Tokens)-1); err != nil {
		t.Fatal(err)
	}
	if len(told) != 1 || told[0] != driver.LostBroken {
		t.Errorf("the holder was told %q, want broken once", told)
	}
	var lost *driver.LostError
	if !errors.As(releasing, &lost) || lost.Reason != driver.LostBroken {
		t.Errorf("its release: %v, want that it was broken", releasing)
	}
	if err := d.Break(t.Context(), r.Key, g.Token); !errors.Is(err, driver.ErrNotHeld) {
		t.Errorf("a second Break: %v, want ErrNotHeld", err)
	}
}

func TestBreak_AfterCloseOfTheHolder_TellsNobody(t *testing.T) {
	d := New(nil)
	operator := d.Peer()
	r := ask("a")
	r.Lost = func(driver.LostReason, error) { t.Error("a closed client was told") }
	g := mustAcquire(t, d, r)
	d.Close()
	if err := operator.Break(t.Context(), r.Key, g.Token); err != nil {
		t.Fatal(err)
	}
}

func TestLocks_FindsByPrefix_AndStopsWhenAsked(t *testing.T) {
	d := New(nil)
	for _, name := range []string{"b1", "a1", "a2"} {
		r := ask(name)
		r.Name = name
		mustAcquire(t, d, r)
	}
	found := infos(t, d, "a")
	if len(found) != 2 || found[0].Name != "a1" || found[1].Name != "a2" {
		t.Errorf("found %+v, want a1 and a2", found)
	}
	for range d.Locks(t.Context(), "") {
		break
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	for _, err := range d.Locks(ctx, "") {
		if !errors.Is(err, context.Canceled) {
			t.Errorf("with a cancelled context: %v", err)
		}
	}
}
