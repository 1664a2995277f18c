package memlock

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

func TestClose_EndsTheWaitsOfThatClientOnly(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		peer := d.Peer()
		mustAcquire(t, peer, ask("a"))
		mine, also := wait(t.Context(), d, ask("b")), wait(t.Context(), d, ask("c"))
		others := wait(t.Context(), peer, ask("d"))
		if err := d.Close(); err != nil {
			t.Fatal(err)
		}
		if n := len(infos(t, peer, "")[0].Waiters); n != 1 {
			t.Errorf("%d wait when Close has returned, want 1", n)
		}
		for _, done := range []<-chan result{mine, also} {
			if got := <-done; !errors.Is(got.err, driver.ErrClosed) {
				t.Errorf("a wait of the closed client: %v, want ErrClosed", got.err)
			}
		}
		if err := peer.Release(t.Context(), give("a")); err != nil {
			t.Fatal(err)
		}
		if got := <-others; got.err != nil {
			t.Errorf("a wait of the other: %v", got.err)
		}
		idle(t, d)
	})
}

// Close takes several waits of the client out. None of them may be granted because another has left the queue.
func TestClose_WithSeveralWaitsThatHoldEachOtherUp_TakesNothing(t *testing.T) {
	for range 20 { // the waits are ended in random order
		synctest.Test(t, func(t *testing.T) {
			d := New(nil)
			peer := d.Peer()
			read := func(id string) *driver.Request {
				r := ask(id)
				r.Key = key
				r.Mode = driver.Shared
				return r
			}
			write := read("w")
			write.Mode = driver.Exclusive
			mustAcquire(t, peer, read("a"))
			first, second := wait(t.Context(), d, write), wait(t.Context(), d, read("r"))
			d.Close()
			for _, done := range []<-chan result{first, second} {
				if got := <-done; !errors.Is(got.err, driver.ErrClosed) {
					t.Errorf("got %v, want ErrClosed", got.err)
				}
			}
			if l := infos(t, peer, "")[0]; len(l.Holders) != 1 || len(l.Waiters) != 0 {
				t.Errorf("left behind: %+v", l)
			}
		})
	}
}

func TestClose_LeavesHoldsToTheirLeases(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		peer := d.Peer()
		mustAcquire(t, d, ask("a"))
		end := time.Now().Add(lease)
		d.Close()
		if got := <-wait(t.Context(), peer, ask("b")); got.err != nil || !got.at.Equal(end) {
			t.Errorf("granted at %v with %v, want %v", got.at, got.err, end)
		}
	})
}

func TestClose_RefusesEverythingAfterwards(t *testing.T) {
	d := New(nil)
	g := mustAcquire(t, d, ask("a"))
	for range 2 {
		if err := d.Close(); err != nil {
			t.Errorf("Close: %v", err)
		}
	}
	_, acquire := d.Acquire(t.Context(), ask("b"))
	_, requeue := d.Requeue(t.Context(), give("a"), ask("c"))
	refusals := map[string]error{
		"Acquire": acquire,
		"Requeue": requeue,
		"Release": d.Release(t.Context(), give("a")),
		"Renew":   renewed(t, d, "a"),
		"Break":   d.Break(t.Context(), ask("a").Key, g.Token),
	}
	for _, err := range d.Locks(t.Context(), "") {
		refusals["Locks"] = err
	}
	for what, err := range refusals {
		if !errors.Is(err, driver.ErrClosed) {
			t.Errorf("%s: %v, want ErrClosed", what, err)
		}
	}
	if f := d.Diagnose(t.Context()); len(f) != 1 || f[0].Level != driver.LevelFail {
		t.Errorf("Diagnose: %+v", f)
	}
}
