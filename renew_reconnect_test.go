package interlock

import (
	"context"
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// reconnecting is a memory engine whose connection can be said to have been made anew.
type reconnecting struct {
	*hooks
	heeds []func()
}

func (r *reconnecting) OnReconnect(f func()) (stop func()) {
	r.heeds = append(r.heeds, f)
	return func() { r.heeds = nil }
}

func (r *reconnecting) reconnect() {
	for _, f := range r.heeds {
		f()
	}
	synctest.Wait()
}

// overReconnecting runs f with a client on such an engine.
func overReconnecting(t *testing.T, f func(t *testing.T, c *Client, r *reconnecting)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := memlock.New(nil)
		r := &reconnecting{hooks: newHooks(d)}
		c := mustNew(t, r, &Options{Retain: second})
		f(t, c, r)
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		synctest.Wait()
		if len(r.heeds) != 0 {
			t.Error("a client that is closed heeds reconnections")
		}
		_ = d.Close()
	})
}

func TestReconnection_HasAllThatIsHeldRenewed_InOneBatch(t *testing.T) {
	overReconnecting(t, func(t *testing.T, c *Client, r *reconnecting) {
		var held []*Lease
		for _, name := range []string{"a", "b", "c"} {
			held = append(held, mustLock(t, t.Context(), c, name))
		}
		read := must(t)(c.RWMutex("a", nil).RLock(t.Context()))
		plain := must(t)(c.Mutex("d", &LockOptions{NoRenew: true}).Lock(t.Context()))
		mustUnlock(t, mustLock(t, t.Context(), c, "retained"))
		var batches [][]driver.Renewal
		on(r.hooks, &r.renew, func(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
			batches = append(batches, batch)
			r.Driver.Renew(ctx, batch, done)
		})
		r.reconnect()
		if len(batches) != 1 || len(batches[0]) != 4 {
			t.Fatalf("renewed %v, want four in one batch", batches)
		}
		for _, b := range batches[0] {
			if b.Retained || b.Name == "d" {
				t.Errorf("renewed %+v", b)
			}
		}
		for _, l := range append(held, read, plain) {
			mustUnlock(t, l)
		}
	})
}

// A server was restarted without its memory: holders hear of it at once, not when they would have renewed.
func TestReconnection_ToAServerThatForgot_TellsTheHolders(t *testing.T) {
	overReconnecting(t, func(t *testing.T, c *Client, r *reconnecting) {
		l := mustLock(t, t.Context(), c, "a")
		if err := r.Driver.Release(
			t.Context(),
			&driver.Release{Key: l.hold().Lock.Key(), ID: l.hold().Engine.ID},
		); err != nil {
			t.Fatal(err)
		}
		if err := l.Err(); err != nil {
			t.Fatalf("before the reconnection: %v", err)
		}
		r.reconnect()
		wantLost(t, l.Err(), LostExpired)
		wantLost(t, l.Unlock(t.Context()), LostExpired)
	})
}

// A renewal that is under way asks the same; one that has failed does not, and need not be waited for.
func TestReconnection_WhileARenewalIsUnderWay_SendsNoOther(t *testing.T) {
	overReconnecting(t, func(t *testing.T, c *Client, r *reconnecting) {
		l := mustLock(t, t.Context(), c, "a")
		sent, answer := 0, make(chan error)
		on(r.hooks, &r.renew, func(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
			sent++
			done(0, <-answer)
		})
		r.reconnect()
		r.reconnect()
		if sent != 1 {
			t.Errorf("%d renewals are under way, want 1", sent)
		}
		answer <- &UnavailableError{Op: "renew", Name: "a"}
		synctest.Wait()
		r.reconnect()
		if sent != 2 {
			t.Errorf("%d renewals after one that failed, want 2", sent)
		}
		answer <- nil
		synctest.Wait()
		mustUnlock(t, l)
	})
}
