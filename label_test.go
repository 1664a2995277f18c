package interlock

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

type callKey struct{}

// as returns a context whose call is to have that label.
func as(t *testing.T, label string) context.Context {
	t.Helper()
	return context.WithValue(t.Context(), callKey{}, label)
}

// labels has a LabelFrom that adds the label of as's context to the label of the lock, and counts how often it is
// asked.
type labels struct{ asked atomic.Int64 }

func (n *labels) from(ctx context.Context, label string) string {
	n.asked.Add(1)
	if call, is := ctx.Value(callKey{}).(string); is {
		return label + call
	}
	return label
}

// shows fails unless the only holder of the lock has that label, as c sees it.
func shows(t *testing.T, c *Client, kind Kind, want string) {
	t.Helper()
	info, err := c.Look(t.Context(), kind, "a")
	if err != nil || len(info.Holders) != 1 || info.Holders[0].Label != want {
		t.Errorf("the %s shows %+v, %v; want the label %q", kind, info.Holders, err, want)
	}
}

func TestLabelFrom_IsAskedOnceForEachCall_AndShown(t *testing.T) {
	var n labels
	bubble(t, &Options{LabelFrom: n.from}, func(t *testing.T, c *Client, h *hooks) {
		other, opts := peer(t, h, nil), &LockOptions{Label: "job "}
		m, rw := c.Mutex("a", opts), c.RWMutex("a", opts)
		for i, call := range []struct {
			kind Kind
			lock func(ctx context.Context) (*Lease, error)
		}{
			{KindMutex, m.Lock},
			{KindMutex, m.TryLock},
			{KindRWMutex, rw.Lock},
			{KindRWMutex, rw.TryRLock},
			{KindSemaphore, func(ctx context.Context) (*Lease, error) {
				return c.Semaphore("a", 3, opts).Acquire(ctx, 2)
			}},
			{KindMutex, func(ctx context.Context) (*Lease, error) {
				all, err := MultiOf(m).Lock(ctx)
				return all.Leases()[0], err
			}},
		} {
			l := must(t)(call.lock(as(t, "of a call")))
			shows(t, other, call.kind, "job of a call")
			time.Sleep(defaultLease) // renewals say the same
			shows(t, other, call.kind, "job of a call")
			mustUnlock(t, l)
			if got := n.asked.Load(); got != int64(i)+1 {
				t.Errorf("after %d calls it was asked %d times", i+1, got)
			}
		}
		l := must(t)(m.Lock(t.Context())) // one without a label of its own
		shows(t, other, KindMutex, "job ")
		mustUnlock(t, l)
	})
}

func TestLabelFrom_IsAskedOnceForEachLockOfAMulti(t *testing.T) {
	var n labels
	bubble(t, &Options{LabelFrom: n.from}, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		all := mustMulti(t, c.Multi([]string{"a", "b"}, nil)) // in one step
		if err := all.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		behind := mustLock(t, t.Context(), other, "b")
		got := later(func() (*Lease, error) {
			all, err := c.Multi([]string{"a", "b"}, nil).Lock(as(t, "both"))
			return all.Leases()[0], err
		})
		synctest.Wait()
		shows(t, other, KindMutex, "both")
		mustUnlock(t, behind)
		woken(t, "a Multi", got)
		if info, err := other.Look(t.Context(), KindMutex, "b"); err != nil || info.Holders[0].Label != "both" {
			t.Errorf("the second lock: %+v, %v", info, err)
		}
		if got := n.asked.Load(); got != 4 {
			t.Errorf("two calls for two locks have asked %d times, want 4", got)
		}
	})
}

func TestLabelFrom_IsKeptByUpgradesAndConditions(t *testing.T) {
	var n labels
	bubble(t, &Options{LabelFrom: n.from}, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		l := must(t)(c.RWMutex("a", nil).UpgradeableRLock(as(t, "reads first")))
		if err := l.Upgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		info, err := other.Look(t.Context(), KindRWMutex, "a")
		if err != nil || len(info.Holders) != 2 {
			t.Fatalf("an upgraded hold: %+v, %v", info, err)
		}
		for _, holder := range info.Holders {
			if holder.Label != "reads first" {
				t.Errorf("an upgraded hold shows %+v", holder)
			}
		}
		mustUnlock(t, l)
		m := c.Mutex("a", nil)
		l = must(t)(m.Lock(as(t, "waits")))
		got := later(func() (*Lease, error) { return c.Cond(m).Wait(t.Context(), l) })
		synctest.Wait()
		if err := c.Cond(m).Signal(t.Context()); err != nil {
			t.Fatal(err)
		}
		l = woken(t, "who waited", got)
		shows(t, other, KindMutex, "waits")
		mustUnlock(t, l)
		if got := n.asked.Load(); got != 2 {
			t.Errorf("two calls have asked %d times", got)
		}
	})
}

// A text that cannot be a label does not fail the call, and is not logged with each call.
func TestLabelFrom_ThatIsNoLabel_DoesNotCount(t *testing.T) {
	for what, label := range map[string]string{"long": strings.Repeat("x", 256), "binary": "\xff"} {
		var log bytes.Buffer
		opts := &Options{
			Logger:    slog.New(slog.NewTextHandler(&log, nil)),
			LabelFrom: func(context.Context, string) string { return label },
		}
		bubble(t, opts, func(t *testing.T, c *Client, _ *hooks) {
			m := c.Mutex("a", &LockOptions{Label: "plain"})
			for range 3 {
				l := must(t)(m.Lock(t.Context()))
				shows(t, c, KindMutex, "plain")
				mustUnlock(t, l)
			}
		})
		if n := strings.Count(log.String(), "LabelFrom"); n != 1 || strings.Contains(log.String(), label) {
			t.Errorf("%s: logged %d times: %s", what, n, log.String())
		}
	}
	long := strings.Repeat("x", driver.MaxLabel)
	bubble(t, &Options{LabelFrom: func(context.Context, string) string { return long }},
		func(t *testing.T, c *Client, _ *hooks) {
			mustLock(t, t.Context(), c, "a")
			shows(t, c, KindMutex, long)
		})
}

func TestLabelFrom_OfALockComesBeforeTheClients_AndAnElectionHasNone(t *testing.T) {
	var n labels
	bubble(t, &Options{LabelFrom: n.from}, func(t *testing.T, c *Client, _ *hooks) {
		off := func(_ context.Context, label string) string { return label }
		l := must(t)(c.Mutex("a", &LockOptions{Label: "plain", LabelFrom: off}).Lock(as(t, " call")))
		shows(t, c, KindMutex, "plain")
		mustUnlock(t, l)
		l = must(t)(c.Election("a", nil).Campaign(as(t, "call"), "leads"))
		shows(t, c, KindElection, "leads")
		mustUnlock(t, l)
		_, err := c.Election("a", &LockOptions{LabelFrom: off}).Campaign(t.Context(), "leads")
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("an election with LabelFrom: %v", err)
		}
		if got := n.asked.Load(); got != 0 {
			t.Errorf("the client's was asked %d times", got)
		}
	})
}

func TestLabelFrom_ThatPanics_HoldsNothing(t *testing.T) {
	opts := &Options{LabelFrom: func(context.Context, string) string { panic("no label") }}
	bubble(t, opts, func(t *testing.T, c *Client, h *hooks) {
		for _, call := range []func(){
			func() { _, _ = c.Lock(t.Context(), "a") },
			func() { _, _ = c.Multi([]string{"a", "b"}, nil).Lock(t.Context()) },
		} {
			if p := panicOf(call); p != "no label" {
				t.Errorf("the panic came as %v", p)
			}
		}
		if h.acquires.Load()+h.bundles.Load() != 0 {
			t.Error("something was asked for")
		}
	})
}

// A hold that was passed on inside the process soon shows its own label to others. A short hold sends no message for
// it.
func TestLabelFrom_OfAHoldThatWasPassedOn(t *testing.T) {
	var n labels
	opts := &Options{LabelFrom: n.from, LocalHandoffTime: time.Hour}
	bubble(t, opts, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		l := mustLock(t, as(t, "first"), c, "a")
		for _, next := range []string{"second", "third", ""} {
			waits := lockLater(as(t, next), c, "a")
			synctest.Wait()
			mustUnlock(t, l)
			l = woken(t, "who waits", waits)
			shows(t, c, KindMutex, next) // its own client knows at once
			time.Sleep(core.RelabelDelay / 2)
			shows(t, other, KindMutex, "first")
		}
		if got := h.renewals.Load(); got != 0 {
			t.Errorf("%d renewals of short holds", got)
		}
		time.Sleep(core.RelabelDelay)
		synctest.Wait()
		shows(t, other, KindMutex, "")
		time.Sleep(5 * time.Second)
		if got := h.renewals.Load(); got != 1 {
			t.Errorf("%d renewals for one new label", got)
		}
		mustUnlock(t, l)
	})
}

// The same of Mutexes of one lock that differ in LockOptions.Label, also when the first of them has the lock again.
func TestLabel_OfAHoldThatWasPassedOnToAnotherMutex(t *testing.T) {
	bubble(t, &Options{LocalHandoffTime: time.Hour}, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		mutexes := []*Mutex{c.Mutex("a", &LockOptions{Label: "first"}), c.Mutex("a", &LockOptions{Label: "second"})}
		l := must(t)(mutexes[0].Lock(t.Context()))
		for i, label := range []string{"second", "first", "second"} {
			waits := make(chan outcome, 1)
			go func() {
				l, err := mutexes[(i+1)%2].Lock(t.Context())
				waits <- outcome{l, err}
			}()
			synctest.Wait()
			mustUnlock(t, l)
			l = woken(t, "who waits", waits)
			time.Sleep(core.RelabelDelay + 1)
			synctest.Wait()
			shows(t, other, KindMutex, label)
		}
		mustUnlock(t, l)
	})
}

// Without labels that differ a pass inside the process sends no renewal for a label.
func TestALocalPass_WithoutLabelsOfCalls_IsNotRenewedForThem(t *testing.T) {
	bubble(t, &Options{LocalHandoffTime: time.Hour}, func(t *testing.T, c *Client, h *hooks) {
		l := passedOn(t, c, "a")
		time.Sleep(time.Second)
		if got := h.renewals.Load(); got != 0 {
			t.Errorf("%d renewals", got)
		}
		mustUnlock(t, l)
	})
}
