package interlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/memlock"
)

// condOf returns the condition of the mutex that these tests use.
func condOf(c *Client) *Cond { return c.Cond(c.Mutex("a", nil)) }

// park locks and waits for the condition in a goroutine, and returns when it waits.
func park(t *testing.T, ctx context.Context, c *Client) (<-chan outcome, *Lease) {
	t.Helper()
	l := mustLock(t, t.Context(), c, "a")
	out := make(chan outcome, 1)
	go func() {
		next, err := condOf(c).Wait(ctx, l)
		out <- outcome{next, err}
	}()
	synctest.Wait()
	return out, l
}

func still(t *testing.T, who string, ch <-chan outcome) {
	t.Helper()
	synctest.Wait()
	select {
	case got := <-ch:
		t.Fatalf("%s has woken: %v, %v", who, got.lease, got.err)
	default:
	}
}

func woken(t *testing.T, who string, ch <-chan outcome) *Lease {
	t.Helper()
	got := <-ch
	if got.err != nil {
		t.Fatalf("%s: %v", who, got.err)
	}
	return got.lease
}

// The doc comment of Wait promises that a call which is wrong in itself leaves the hold as it was.
func TestCondWait_ThatIsWrongInItself_ChangesNothing(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		plain := mustNew(t, newBlindDriver(t), nil) // whose engine has no conditions
		defer plain.Close()
		l, its := mustLock(t, t.Context(), c, "a"), mustLock(t, t.Context(), plain, "a")
		inner := mustLock(t, l.Context(t.Context()), c, "a")
		for what, tc := range map[string]struct {
			cond  *Cond
			ctx   context.Context //nolint:containedctx // of one case
			lease *Lease
			is    error // nil if it is none of the classes
		}{
			"no conditions":                {plain.Cond(plain.Mutex("a", nil)), t.Context(), its, ErrUnsupported},
			"a nil context":                {condOf(c), nil, l, nil},
			"a nil lease":                  {condOf(c), t.Context(), nil, ErrNotHeld},
			"a lease that nobody has made": {condOf(c), t.Context(), &Lease{}, nil},
			"a nil mutex":                  {c.Cond(nil), t.Context(), l, nil},
			"a bad name":                   {c.Cond(c.Mutex("", nil)), t.Context(), l, nil},
			"a mutex of another client":    {c.Cond(other.Mutex("a", nil)), t.Context(), l, nil},
			"a hold of another lock":       {c.Cond(c.Mutex("b", nil)), t.Context(), l, ErrNotHeld},
			"a hold of another client":     {condOf(other), t.Context(), l, ErrNotHeld},
			"a hold beside another":        {condOf(c), t.Context(), l, ErrNested},
		} {
			next, err := tc.cond.Wait(tc.ctx, tc.lease)
			if next != nil || err == nil || tc.is != nil && !errors.Is(err, tc.is) {
				t.Errorf("%s: %v, %v", what, next, err)
			}
			if err := errors.Join(l.Err(), inner.Err(), its.Err()); err != nil {
				t.Fatalf("%s has ended a hold: %v", what, err)
			}
		}
		for _, held := range []*Lease{inner, l, its} {
			mustUnlock(t, held)
		}
	})
}

func TestCond_SignalWakesOne_BroadcastAll_WhoGetTheLockOneByOne(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		one, old := park(t, t.Context(), c)
		two, _ := park(t, t.Context(), other)
		three, _ := park(t, t.Context(), c)
		if err := old.Err(); !errors.Is(err, ErrReleased) {
			t.Errorf("the hold that was given up says %v", err)
		}
		inside := mustLock(t, t.Context(), other, "a")
		if err := condOf(other).Signal(t.Context()); err != nil {
			t.Fatal(err)
		}
		still(t, "one, while another holds the lock", one)
		mustUnlock(t, inside)
		lease := woken(t, "one", one)
		if lease.Token() <= inside.Token() || lease.Owner() != old.Owner() || lease.Err() != nil {
			t.Errorf("the new hold has token %d after %d, owner %s of %s, %v", lease.Token(), inside.Token(),
				lease.Owner(), old.Owner(), lease.Err())
		}
		mustUnlock(t, lease)
		still(t, "two", two)
		if err := condOf(c).Broadcast(t.Context()); err != nil {
			t.Fatal(err)
		}
		lease = woken(t, "two", two)
		still(t, "three, while two holds the lock", three)
		mustUnlock(t, lease)
		mustUnlock(t, woken(t, "three", three))
		if err := condOf(c).Signal(t.Context()); err != nil {
			t.Errorf("with nobody waiting: %v", err)
		}
	})
}

func TestCond_ASignalThatMeetsOneWhoGivesUp_GoesOnToTheNext(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, cancel := context.WithCancel(t.Context())
		one, _ := park(t, ctx, c)
		two, _ := park(t, t.Context(), c)
		inside := mustLock(t, t.Context(), peer(t, h, nil), "a")
		if err := condOf(c).Signal(t.Context()); err != nil {
			t.Fatal(err)
		}
		cancel() // it has the signal, and waits for the lock
		if got := <-one; !errors.Is(got.err, context.Canceled) {
			t.Errorf("who gave up: %v", got.err)
		}
		synctest.Wait()
		mustUnlock(t, inside)
		mustUnlock(t, woken(t, "two", two))
	})
}

func TestCond_WhoGivesUpBeforeASignal_TakesNone(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		one, _ := park(t, ctx, c)
		two, _ := park(t, t.Context(), c)
		if got := <-one; !errors.Is(got.err, context.DeadlineExceeded) {
			t.Errorf("who gave up: %v", got.err)
		}
		if err := condOf(c).Signal(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustUnlock(t, woken(t, "two", two))
	})
}

func TestCond_NestedAndNotHeld_ChangeNothing(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		again := mustLock(t, l.Context(t.Context()), c, "a")
		if _, err := condOf(c).Wait(t.Context(), l); !errors.Is(err, ErrNested) || l.Err() != nil ||
			again.Err() != nil {
			t.Errorf("with another hold: %v; the holds say %v, %v", err, l.Err(), again.Err())
		}
		mustUnlock(t, again)
		b := mustLock(t, t.Context(), c, "b")
		if _, err := condOf(c).Wait(t.Context(), b); !errors.Is(err, ErrNotHeld) || b.Err() != nil {
			t.Errorf("with a hold of another mutex: %v, %v", err, b.Err())
		}
		mustUnlock(t, b)
		mustUnlock(t, l)
		if _, err := condOf(c).Wait(t.Context(), l); !errors.Is(err, ErrNotHeld) || !errors.Is(err, ErrReleased) {
			t.Errorf("with one that was released: %v", err)
		}

		other := peer(t, h, nil)
		named := WithOwner(t.Context(), "order-7")
		here, there := mustLock(t, named, c, "a"), mustLock(t, named, other, "a")
		if _, err := condOf(c).Wait(t.Context(), here); !errors.Is(err, ErrNested) || here.Err() != nil ||
			there.Err() != nil {
			t.Errorf("with a hold in another process: %v; the holds say %v, %v", err, here.Err(), there.Err())
		}
		time.Sleep(2 * defaultLease) // they are renewed as before
		mustUnlock(t, here)
		mustUnlock(t, there)
		if _, err := c.Cond(other.Mutex("a", nil)).Wait(t.Context(), l); err == nil ||
			!strings.Contains(err.Error(), "another client's") {
			t.Errorf("of another client's mutex: %v", err)
		}
	})
}

func TestCond_ANamedOwner_Waits(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		l := mustLock(t, WithOwner(t.Context(), "order-7"), c, "a")
		out := make(chan outcome, 1)
		go func() {
			next, err := condOf(c).Wait(t.Context(), l)
			out <- outcome{next, err}
		}()
		synctest.Wait()
		if !errors.Is(l.Err(), ErrReleased) {
			t.Errorf("the hold that was given up says %v", l.Err())
		}
		if err := condOf(c).Signal(t.Context()); err != nil {
			t.Fatal(err)
		}
		next := woken(t, "the owner", out)
		if next.Owner() != "order-7" {
			t.Errorf("the new hold is %s's", next.Owner())
		}
		mustUnlock(t, next)
	})
}

func TestCond_WhoStandsInLine_GetsTheLockThatAWaitGivesUp(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		inLine := lockLater(t.Context(), c, "a")
		synctest.Wait()
		out := make(chan outcome, 1)
		go func() {
			next, err := condOf(c).Wait(t.Context(), l)
			out <- outcome{next, err}
		}()
		got := <-inLine
		if got.err != nil {
			t.Fatal(got.err)
		}
		if err := condOf(c).Signal(t.Context()); err != nil {
			t.Fatal(err)
		}
		still(t, "who waits, while another holds the lock", out)
		mustUnlock(t, got.lease)
		mustUnlock(t, woken(t, "who waits", out))
	})
}

func TestCond_CloseEndsAWait_AndNothingIsHeld(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		one, _ := park(t, t.Context(), other)
		if err := other.Close(); err != nil {
			t.Error(err)
		}
		if got := <-one; !errors.Is(got.err, ErrClosed) {
			t.Errorf("after Close: %v", got.err)
		}
		mustUnlock(t, mustLock(t, t.Context(), c, "a"))
	})
}

func TestCond_LostReplies_NeitherLoseNorDoubleASignal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := memlock.New(nil)
		wrapped, control := faulty.Wrap(d.Peer(), 1)
		bad, good := mustNew(t, wrapped, nil), mustNew(t, d, nil)
		one, _ := park(t, t.Context(), good)
		two, _ := park(t, t.Context(), good)
		control.Rules(faulty.Rule{Op: faulty.CondSignal, Count: 3, Drop: faulty.Reply})
		if err := condOf(bad).Signal(t.Context()); err != nil {
			t.Fatal(err)
		}
		mustUnlock(t, woken(t, "one", one))
		still(t, "two", two)

		// The answer that tells the waiter of the signal is lost. The waiter has nothing then, and the signal must go
		// on to the next.
		control.Rules(faulty.Rule{Op: faulty.CondWait, Drop: faulty.Reply})
		three, _ := park(t, t.Context(), bad)
		if err := condOf(good).Signal(t.Context()); err != nil { // two's
			t.Fatal(err)
		}
		mustUnlock(t, woken(t, "two", two))
		four, _ := park(t, t.Context(), good)
		if err := condOf(good).Signal(t.Context()); err != nil { // three's
			t.Fatal(err)
		}
		if got := <-three; !errors.Is(got.err, ErrUnavailable) {
			t.Errorf("who has lost the answer: %v", got.err)
		}
		mustUnlock(t, woken(t, "four", four))
		if err := errors.Join(bad.Close(), good.Close(), wrapped.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	})
}
