package interlock

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/shell"
)

// observer reads what Observe yields, in a goroutine of its own.
type observer struct {
	t    *testing.T
	seen chan observed
	stop context.CancelFunc
}

type observed struct {
	leader Leader
	err    error
}

func observe(t *testing.T, c *Client) *observer {
	ctx, cancel := context.WithCancel(t.Context())
	o := &observer{t: t, seen: make(chan observed), stop: cancel}
	go func() {
		defer close(o.seen)
		for l, err := range c.Election("boss", nil).Observe(ctx) {
			o.seen <- observed{l, err}
		}
	}()
	return o
}

// next fails unless Observe yields value next, within that time.
func (o *observer) next(value string, within time.Duration) {
	o.t.Helper()
	start := time.Now()
	got, more := <-o.seen
	if !more || got.err != nil || got.leader.Value != value || time.Since(start) > within {
		o.t.Fatalf("after %v: %+v (%v), want %q within %v", time.Since(start), got, more, value, within)
	}
}

// ends stops the loop over Observe and waits for its end.
func (o *observer) ends() {
	o.t.Helper()
	o.stop()
	for got := range o.seen {
		o.t.Errorf("after its end: %+v", got)
	}
}

func TestObserve_YieldsEachLeaderAndNone(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		o := observe(t, peer(t, h, nil))
		o.next("", 0)
		first := mustLead(t, c, "host-1")
		o.next("host-1", 0)
		second := candidate(t.Context(), c, "host-2")
		synctest.Wait()
		mustUnlock(t, first)
		next := <-second
		o.next("host-2", 0)
		mustUnlock(t, next.lease)
		o.next("", 0)
		o.ends()
	})
}

func TestObserve_SeesADeadLeadersEnd_AlthoughNobodyTellsIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		o := observe(t, peer(t, h, nil))
		o.next("", 0)
		lease := mustLead(t, c, "host-1")
		o.next("host-1", 0)
		on(h, &h.renew, noRenewals)
		on(h, &h.release, h.hung)
		o.next("", defaultLease+shell.LookSeldom)
		o.ends()
		wantLost(t, lease.Err(), LostUnconfirmed)
		on(h, &h.release, h.Driver.Release)
		_ = lease.Unlock(t.Context())
	})
}

// A thousand observers load one server together. So each looks no more often than there can be something to see.
func TestObserve_OnAnEngineThatTells_LooksWhenTheLeaseMayBeOver(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		o := observe(t, c)
		o.next("", 0)
		time.Sleep(10 * shell.LookRarely)
		if n := h.looks.Swap(0); n < 10 || n > 14 { // a quarter of each pause is random
			t.Errorf("%d looks in ten minutes in which nobody led", n)
		}
		lease := mustLead(t, peer(t, h, nil), "host-1")
		o.next("host-1", 0)
		h.looks.Store(0)
		time.Sleep(10 * time.Minute)
		if n := h.looks.Load(); n < 15 || n > 35 { // a lease of 30 s, which is renewed: 20 to 30 s of it are left
			t.Errorf("%d looks in ten minutes of one term", n)
		}
		o.ends()
		mustUnlock(t, lease)
	})
}

func TestObserve_WhoIsSlow_MissesSome_ButNeverTheLast(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		o := observe(t, peer(t, h, nil))
		o.next("", 0)
		for range 10 {
			mustUnlock(t, mustLead(t, c, "short"))
		}
		lease := mustLead(t, c, "last")
		synctest.Wait()
		for got := range o.seen {
			if got.leader.Value == "last" {
				break
			}
		}
		o.ends()
		mustUnlock(t, lease)
	})
}

func TestObserve_ThroughAnOutage_SaysSoOnceAndGoesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBlindDriver(t)
		c := mustNew(t, d, nil)
		o := observe(t, c)
		o.next("", 0)
		d.set(true)
		got := <-o.seen
		if !errors.Is(got.err, ErrUnavailable) {
			t.Errorf("in an outage: %+v", got)
		}
		time.Sleep(10 * shell.LookSeldom)
		d.set(false)
		o.next("", shell.LookSeldom)
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
		if got := <-o.seen; !errors.Is(got.err, ErrClosed) {
			t.Errorf("after Close: %+v", got)
		}
		o.ends()
	})
}

func TestObserve_OfAnEngineThatRefuses_SaysSoAndEnds(t *testing.T) {
	for _, outage := range []bool{false, true} {
		t.Run(fmt.Sprintf("after an outage: %v", outage), func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				d := newBlindDriver(t)
				c := mustNew(t, d, nil)
				defer c.Close()
				o := observe(t, c)
				o.next("", 0)
				if d.set(outage); outage {
					<-o.seen
				}
				d.bars.Store(true)
				late := time.AfterFunc(time.Hour, o.stop)
				if got := <-o.seen; !errors.Is(got.err, ErrRefused) {
					t.Errorf("got %+v", got)
				}
				if got, more := <-o.seen; more || !late.Stop() {
					t.Errorf("it did not end with the refusal: %+v", got)
				}
				o.ends()
			})
		})
	}
}

func TestObserve_OnAnEngineThatTellsNothing_LooksEverySecond(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := newBlindDriver(t)
		c := mustNew(t, d, nil)
		o := observe(t, c)
		o.next("", 0)
		lease := mustLead(t, c, "host-1")
		o.next("host-1", shell.LookOften)
		mustUnlock(t, lease)
		o.next("", shell.LookOften)
		o.ends()
		if err := c.Close(); err != nil {
			t.Fatal(err)
		}
	})
}

// forgetful is an engine that shows the leader whom the test names.
type forgetful struct {
	*blindDriver
	token atomic.Uint64
	fewer atomic.Bool // the look shows a smaller token than the leader has
}

func (f *forgetful) Look(_ context.Context, key driver.Key) (driver.LockInfo, error) {
	info := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	if token := f.token.Load(); token != 0 {
		info.Holders = []driver.Holder{{Label: fmt.Sprint("host-", token), Token: token}}
		if f.fewer.Load() {
			info.Holders[0].Token--
		}
	}
	return info, nil
}

// A failover that has forgotten a leader shows the one before.
func TestObserve_NeverGoesBackToASmallerToken(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := &forgetful{blindDriver: newBlindDriver(t)}
		c := mustNew(t, d, nil)
		o := observe(t, c)
		o.next("", 0)
		for _, step := range []struct {
			token uint64
			sees  string
		}{{11, "host-11"}, {13, "host-13"}, {11, ""}, {14, "host-14"}, {0, ""}} {
			d.token.Store(step.token)
			o.next(step.sees, 2*shell.LookSeldom)
			d.fewer.Store(true) // which is the same leader
			time.Sleep(10 * shell.LookSeldom)
			d.fewer.Store(false)
		}
		d.token.Store(12) // and nobody leads still
		time.Sleep(10 * shell.LookSeldom)
		o.ends()
		if err := c.Close(); err != nil {
			t.Error(err)
		}
	})
}
