package memlock

import (
	"context"
	"errors"
	"strconv"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// remembered returns how many tombs d's store keeps, and fails if its lists of them disagree.
func remembered(t *testing.T, d *Driver) int {
	t.Helper()
	d.store.mu.Lock()
	defer d.store.mu.Unlock()
	g := &d.store.q.graves
	inRows := 0
	for _, r := range []*row{&g.released, &g.undone} {
		n := 0
		for tomb := r.first; tomb != nil; tomb = tomb.next {
			if n++; g.tombs[tomb.ref] != tomb || tomb.in != r {
				t.Fatalf("%v is in a row and not remembered", tomb.ref)
			}
		}
		if n != r.n {
			t.Fatalf("%d in a row, counted as %d", n, r.n)
		}
		inRows += n
	}
	lost := 0
	for _, tomb := range g.tombs {
		if tomb.reason != "" {
			lost++
		}
	}
	if len(g.agenda) != len(g.tombs) || inRows+lost != len(g.tombs) {
		t.Fatalf("%d remembered, %d to be forgotten, %d in rows, %d lost", len(g.tombs), len(g.agenda), inRows, lost)
	}
	return len(g.tombs)
}

// longAsk returns a request with a lease that outlasts every test.
func longAsk(id string) *driver.Request {
	r := ask(id)
	r.Lease = time.Hour
	return r
}

func TestReleased_AreRemembered_ButNoMoreThanSoMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		defer d.Close()
		undone := give("undone")
		undone.Undo, undone.Horizon = true, time.Hour
		if err := d.Release(t.Context(), undone); err != nil {
			t.Fatal(err)
		}
		const cycles = 3*mostTombs + 7
		for i := range cycles {
			mustAcquire(t, d, longAsk(strconv.Itoa(i)))
			if err := d.Release(t.Context(), give(strconv.Itoa(i))); err != nil {
				t.Fatal(err)
			}
		}
		if n := remembered(t, d); n != mostTombs+1 {
			t.Errorf("%d of %d are remembered, want %d", n, cycles+1, mostTombs+1)
		}
		for _, id := range []string{"undone", strconv.Itoa(cycles - 1), strconv.Itoa(cycles - mostTombs)} {
			if _, err := d.Acquire(t.Context(), longAsk(id)); !errors.Is(err, driver.ErrLost) {
				t.Errorf("a copy of %s: %v", id, err)
			}
		}
		time.Sleep(time.Hour)
		mustAcquire(t, d, longAsk("next"))
		if n := remembered(t, d); n != 0 {
			t.Errorf("%d are remembered after their lease", n)
		}
	})
}

func TestUndone_AreRemembered_ButNoMoreThanSoMany(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		defer d.Close()
		mustAcquire(t, d, longAsk("holds"))
		const waits = mostTombs + 100
		for i := range waits { // waits that were given up, as the portable layer settles them
			ctx, cancel := context.WithCancel(t.Context())
			done := wait(ctx, d, longAsk(strconv.Itoa(i)))
			synctest.Wait()
			cancel()
			if got := <-done; !errors.Is(got.err, context.Canceled) {
				t.Fatal(got.err)
			}
			undo := give(strconv.Itoa(i))
			undo.Undo, undo.Horizon = true, time.Hour
			if err := d.Release(t.Context(), undo); err != nil {
				t.Fatal(err)
			}
		}
		if n := remembered(t, d); n != mostTombs {
			t.Errorf("%d of %d are remembered, want %d", n, waits, mostTombs)
		}
	})
}

// An undo of a request that has been released says that a copy may still come. From then on it counts as undone.
func TestReleased_AndUndoneThen_CountsAsUndone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		defer d.Close()
		mustAcquire(t, d, longAsk("a"))
		undo := give("a")
		undo.Undo, undo.Horizon = true, 2*time.Hour
		for _, r := range []*driver.Release{give("a"), undo, undo} {
			if err := d.Release(t.Context(), r); err != nil {
				t.Fatal(err)
			}
		}
		if n := remembered(t, d); n != 1 || d.store.q.graves.undone.n != 1 {
			t.Errorf("%d remembered, %d of them undone", n, d.store.q.graves.undone.n)
		}
	})
}
