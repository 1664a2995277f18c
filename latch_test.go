package interlock

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/internal/shell"
	"github.com/interlock-go/interlock/memlock"
)

func mustSet(t *testing.T, l *Latch, n int64) {
	t.Helper()
	if set, err := l.Set(t.Context(), n); err != nil || !set {
		t.Fatalf("Set(%d): %v, %v", n, set, err)
	}
}

func wantCount(t *testing.T, l *Latch, want int64) {
	t.Helper()
	if got, err := l.Count(t.Context()); err != nil || got != want {
		t.Errorf("the count is %d, %v; want %d", got, err, want)
	}
}

func mustCountDown(t *testing.T, l *Latch, want int64) {
	t.Helper()
	if left, err := l.CountDown(t.Context()); err != nil || left != want {
		t.Errorf("a count-down left %d, %v; want %d", left, err, want)
	}
}

func TestLatch_EverybodyWhoWaitsReturnsAtZero_AndNobodyBefore(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := c.Latch("ready")
		mustSet(t, l, 3)
		var through gauge
		var all sync.WaitGroup
		for _, client := range []*Client{c, peer(t, h, nil), peer(t, h, nil)} {
			all.Go(func() {
				if err := client.Latch("ready").Wait(t.Context()); err != nil {
					t.Errorf("Wait: %v", err)
				}
				through.enter()
			})
		}
		mustCountDown(t, l, 2)
		mustCountDown(t, l, 1)
		synctest.Wait()
		if through.now != 0 {
			t.Errorf("%d got through before zero", through.now)
		}
		start := time.Now()
		mustCountDown(t, l, 0)
		all.Wait()
		if time.Since(start) != 0 {
			t.Errorf("the wake-up took %v", time.Since(start))
		}
		mustCountDown(t, l, 0) // at zero it does nothing
		if err := l.Wait(t.Context()); err != nil {
			t.Errorf("a wait at zero: %v", err)
		}
	})
}

func TestLatch_CountsOneRoundAtATime_AndStaysWhenItsSetterIsGone(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := c.Latch("ready")
		wantCount(t, l, 0)
		d := h.Peer()
		setter := mustNew(t, d, nil)
		mustSet(t, setter.Latch("ready"), 2)
		if err := errors.Join(setter.Close(), d.Close()); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Hour)
		wantCount(t, l, 2)
		if set, err := l.Set(t.Context(), 5); set || err != nil {
			t.Errorf("Set of one that counts: %v, %v", set, err)
		}
		wantCount(t, l, 2)
		mustCountDown(t, l, 1)
		mustCountDown(t, l, 0)
		mustSet(t, l, 1)
		wantCount(t, l, 1)
		mustCountDown(t, l, 0)
	})
}

func TestLatch_RefusesWhatCannotBe(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		for _, n := range []int64{0, -1, maxCount + 1} {
			if _, err := c.Latch("ready").Set(t.Context(), n); err == nil ||
				!strings.Contains(err.Error(), "from 1 to 2^53") {
				t.Errorf("Set(%d): %v", n, err)
			}
		}
		if err := c.Latch("").Wait(t.Context()); err == nil || !strings.Contains(err.Error(), "is empty") {
			t.Errorf("without a name: %v", err)
		}
	})
	c := mustNew(t, &instantly{}, nil)
	defer c.Close()
	if _, err := c.Latch("ready").CountDown(t.Context()); !errors.Is(err, ErrUnsupported) {
		t.Errorf("on an engine without latches: %v", err)
	}
}

func TestLatch_AWaitEndsWithItsContextAndWithTheClient(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		mustSet(t, c.Latch("ready"), 1)
		ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
		defer cancel()
		if err := c.Latch("ready").Wait(ctx); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("when its context ended: %v", err)
		}
		other := peer(t, h, nil)
		ended := make(chan error, 1)
		go func() { ended <- other.Latch("ready").Wait(t.Context()) }()
		synctest.Wait()
		_ = other.Close()
		if err := <-ended; !errors.Is(err, ErrClosed) {
			t.Errorf("when the client was closed: %v", err)
		}
	})
}

// latchOver runs f with the same latch by two clients, one behind a bad network and one behind a good one.
func latchOver(t *testing.T, f func(t *testing.T, bad, good *Latch, control *faulty.Control)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		d := memlock.New(nil)
		wrapped, control := faulty.Wrap(d.Peer(), 1)
		bad, good := mustNew(t, wrapped, nil), mustNew(t, d, nil)
		f(t, bad.Latch("ready"), good.Latch("ready"), control)
		if err := errors.Join(bad.Close(), good.Close(), wrapped.Close(), d.Close()); err != nil {
			t.Error(err)
		}
	})
}

func TestLatch_LostReplies_CountOnce(t *testing.T) {
	latchOver(t, func(t *testing.T, bad, good *Latch, control *faulty.Control) {
		control.Rules(faulty.Rule{Op: faulty.SetLatch, Count: 3, Drop: faulty.Reply},
			faulty.Rule{Op: faulty.CountDown, Count: 3, Drop: faulty.Reply})
		mustSet(t, bad, 3)
		wantCount(t, good, 3)
		mustCountDown(t, bad, 2)
		mustCountDown(t, good, 1)
		control.Rules(faulty.Rule{Op: faulty.CountDown, Count: 1, Drop: faulty.Reply})
		mustCountDown(t, bad, 0)
		mustSet(t, good, 1)
		control.Rules(faulty.Rule{Op: faulty.CountDown, Count: 1, Copy: time.Second})
		mustCountDown(t, bad, 0)
		mustSet(t, good, 2)
		time.Sleep(time.Minute / 2) // a copy of the count-down of the round before has come
		wantCount(t, good, 2)
	})
}

func TestLatch_LostMessages_DelayAWaitAndNoMore(t *testing.T) {
	latchOver(t, func(t *testing.T, bad, good *Latch, control *faulty.Control) {
		mustSet(t, good, 1)
		control.Rules(faulty.Rule{Op: faulty.Watch, Drop: faulty.Reply})
		ended := make(chan error, 1)
		go func() { ended <- bad.Wait(t.Context()) }()
		synctest.Wait()
		start := time.Now()
		mustCountDown(t, good, 0)
		if err := <-ended; err != nil || time.Since(start) > shell.LookRarely {
			t.Errorf("%v after %v", err, time.Since(start))
		}
	})
}

func TestLatch_OnAnEngineThatDoesNotAnswer_SaysSoInTime(t *testing.T) {
	latchOver(t, func(t *testing.T, bad, good *Latch, control *faulty.Control) {
		mustSet(t, good, 2)
		control.Pause()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		start := time.Now()
		if _, err := bad.CountDown(ctx); !errors.Is(err, ErrUnavailable) || !errors.Is(err, context.DeadlineExceeded) ||
			time.Since(start) != time.Second {
			t.Errorf("with a context: %v after %v", err, time.Since(start))
		}
		start = time.Now()
		if _, err := bad.CountDown(t.Context()); !errors.Is(err, ErrUnavailable) ||
			time.Since(start) > defaultLease+shell.SettleAttempt {
			t.Errorf("without: %v after %v", err, time.Since(start))
		}
		control.Resume()
		mustCountDown(t, bad, 1)
	})
}

var _ driver.Latcher = (*hooks)(nil)
