package interlock

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Mutexes of one lock may differ in their options. What a hold asked for counts, however its grant came to it.

func TestMinHold_OfAGrantThatCameFromARetainingMutex_KeepsOthersOut(t *testing.T) {
	for _, how := range []string{"a pass", "a take-over"} {
		t.Run(how, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
				retains := c.Mutex("job", &LockOptions{Retain: time.Minute})
				job := c.Mutex("job", &LockOptions{MinHold: 10 * second})
				first := must(t)(retains.Lock(t.Context()))
				if how == "a take-over" {
					mustUnlock(t, first)
				}
				got := make(chan outcome, 1)
				go func() {
					l, err := job.Lock(t.Context())
					got <- outcome{l, err}
				}()
				synctest.Wait()
				if how == "a pass" {
					mustUnlock(t, first)
				}
				o := <-got
				hold, end := must(t)(o.lease, o.err), time.Now().Add(10*second)
				if !hold.hold().Local {
					t.Fatal("the engine was asked")
				}
				mustUnlock(t, hold)
				mustUnlock(t, must(t)(retains.Lock(t.Context())))
				wantAt(t, end, "the next of this client")
			})
		})
	}
}

// The same with Options.Retain, as a program has it: one job with a MinHold, everything else by default.
func TestMinHold_BesideOptionsRetain_KeepsOtherClientsOut(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		pair(t, c, "job")
		hold := must(t)(c.Mutex("job", &LockOptions{MinHold: 10 * second}).Lock(t.Context()))
		end := time.Now().Add(10 * second)
		mustUnlock(t, hold)
		mustUnlock(t, mustLock(t, t.Context(), other, "job"))
		wantAt(t, end, "the other client")
	})
}

func TestRetain_IsThatOfTheLastHold(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		long := c.Mutex("a", &LockOptions{Retain: time.Minute})
		mustUnlock(t, must(t)(long.Lock(t.Context())))
		mustUnlock(t, must(t)(c.Mutex("a", &LockOptions{Retain: 5 * second}).Lock(t.Context())))
		time.Sleep(5*second + 1)
		synctest.Wait()
		if n := h.releases.Load(); n != 1 {
			t.Errorf("after the Retain of the last hold: %d releases, want 1", n)
		}
		mustUnlock(t, must(t)(long.Lock(t.Context())))
		hold := mustLock(t, t.Context(), c, "a")
		if !hold.hold().Local {
			t.Fatal("the engine was asked")
		}
		mustUnlock(t, hold)
		synctest.Wait()
		if n := h.releases.Load(); n != 2 {
			t.Errorf("after a hold without Retain: %d releases, want 2", n)
		}
	})
}

// plain is an engine that tells of recalls and cannot requeue, which package driver allows.
type plain struct {
	driver.Driver
	driver.Renewer
}

// After Extend the grant has more trust left than the waiter may get, so it does not pass on. It must not be retained
// either: then the waiter would stand behind it for ever.
func TestRetain_OfAHoldThatWasExtended_DoesNotKeepAWaiterOut(t *testing.T) {
	for engine, wrap := range map[string]func(h *hooks) driver.Driver{
		"with Requeue":    func(h *hooks) driver.Driver { return h },
		"without Requeue": func(h *hooks) driver.Driver { return plain{h, h} },
	} {
		for name, retain := range map[string]time.Duration{"with Retain": 10 * second, "without": 0} {
			t.Run(engine+", "+name, func(t *testing.T) {
				bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
					c := mustNew(t, wrap(h), nil)
					defer c.Close()
					ctx, cancel := context.WithTimeout(t.Context(), 24*time.Hour)
					defer cancel()
					m := c.Mutex("job", &LockOptions{Retain: retain})
					hold := must(t)(m.Lock(ctx))
					if err := hold.Extend(ctx, time.Hour); err != nil {
						t.Fatal(err)
					}
					got := make(chan outcome, 1)
					go func() {
						l, err := m.Lock(ctx)
						got <- outcome{l, err}
					}()
					synctest.Wait()
					end := time.Now()
					mustUnlock(t, hold)
					o := <-got
					mustUnlock(t, must(t)(o.lease, o.err))
					wantAt(t, end, "the waiter")
				})
			})
		}
	}
}

func TestLockDelay_OfAHoldThatHasReentered_IsThatOfTheFirst(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		first := must(t)(c.Mutex("a", &LockOptions{LockDelay: 20 * second}).Lock(t.Context()))
		inner := must(t)(c.Mutex("a", &LockOptions{MaxHold: 5 * second}).Lock(first.Context(t.Context())))
		mustUnlock(t, first)
		<-inner.Lost()
		end := time.Now().Add(20 * second)
		mustUnlock(t, mustLock(t, t.Context(), other, "a"))
		wantAt(t, end, "after the loss")
	})
}

func TestAbandon_OfAHoldThatHasReentered_KeepsTheLockForItsOwnLease(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c, other := mustNew(t, &forever{h}, nil), peer(t, h, nil)
		defer c.Close()
		first := mustLock(t, t.Context(), c, "a")
		fixed := &LockOptions{Lease: 5 * time.Minute, NoRenew: true}
		inner := must(t)(c.Mutex("a", fixed).Lock(first.Context(t.Context())))
		mustUnlock(t, first)
		if err := inner.Abandon(); err != nil {
			t.Fatal(err)
		}
		if got := heldFor(t, other); got < 5*time.Minute-second || got > 5*time.Minute+second {
			t.Errorf("another got it after %v, want the lease of the hold that was abandoned", got)
		}
	})
}
