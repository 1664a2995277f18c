package memlock

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// The holds of one client end, those of others and its own longer ones do not, and the client hears nothing.
func TestStall_EndsTheHoldsOfOneClientThatAreOverByThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		stalled := New(nil)
		other := stalled.Peer()
		told := false
		short, long, others := ask("short"), ask("long"), ask("others")
		short.Lost = func(driver.LostReason, error) { told = true }
		long.Name, long.Lease = "long", 2*lease
		others.Name = "others"
		older := mustAcquire(t, stalled, short)
		mustAcquire(t, stalled, long)
		mustAcquire(t, other, others)
		next := wait(t.Context(), other, ask("next"))
		if err := stalled.Stall(lease); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		select {
		case got := <-next:
			if got.err != nil || got.grant.Token <= older.Token {
				t.Errorf("the next in line: got %+v, after token %d", got, older.Token)
			}
		default:
			t.Error("the lock went to nobody")
		}
		var lost *driver.LostError
		if err := renewed(t, stalled, "short"); !errors.As(err, &lost) || lost.Reason != driver.LostTaken {
			t.Errorf("a renewal of what is over: got %v", err)
		}
		if told {
			t.Error("a process that stands still was told of its loss")
		}
		all := infos(t, other, "")
		if len(all) != 3 {
			t.Errorf("%d locks are in use, want m, long and others", len(all))
		}
		for _, info := range all {
			left := map[string]time.Duration{"m": lease, "long": lease, "others": lease}[info.Name]
			if got := time.Until(info.Holders[0].Until); got != left {
				t.Errorf("%s: %v are left, want %v", info.Name, got, left)
			}
		}
		_ = stalled.Close()
		if err := stalled.Stall(lease); !errors.Is(err, driver.ErrClosed) {
			t.Errorf("after Close: got %v", err)
		}
		_ = other.Close()
	})
}

// A lock with a LockDelay stays closed after a stall as after any other loss.
func TestStall_BeginsTheLockDelay(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := New(nil)
		defer func() { _ = d.Close() }()
		r := ask("delayed")
		r.LockDelay = time.Minute
		mustAcquire(t, d, r)
		began, next := time.Now(), wait(t.Context(), d.Peer(), ask("next"))
		if err := d.Stall(lease); err != nil {
			t.Fatal(err)
		}
		if got := <-next; got.err != nil || got.at.Sub(began) != time.Minute {
			t.Errorf("got %v after %v", got.err, got.at.Sub(began))
		}
	})
}
