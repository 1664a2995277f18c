package interlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// Renew of an engine with sessions only serves to show that a hold is retained. The hold lasts as long as the session.
func (s *sessions) Renew(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
	for i := range batch {
		batch[i].Lease = time.Hour
	}
	s.hooks.Renew(ctx, batch, done)
}

// retainingSession is sessionBubble with a client that retains.
func retainingSession(t *testing.T, f func(t *testing.T, c *Client, s *sessions)) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		s := &sessions{hooks: h}
		s.pinged.ping()
		c := mustNew(t, s, retaining)
		defer c.Close()
		f(t, c, s)
	})
}

// shownFree reports whether the engine shows that nobody holds a.
func (s *sessions) shownFree(t *testing.T) bool {
	t.Helper()
	synctest.Wait()
	info, err := s.Look(t.Context(), driver.Key{Kind: KindMutex, Name: "a"})
	if err != nil || len(info.Holders) != 1 {
		t.Fatalf("%+v, %v", info, err)
	}
	return info.Holders[0].Retained
}

// rest lets that time go by, and keeps the session alive in it.
func (s *sessions) rest(d time.Duration) {
	for end := time.Now().Add(d); time.Now().Before(end); {
		s.pinged.ping()
		time.Sleep(min(second, time.Until(end))) // virtual
	}
	s.pinged.ping()
}

func TestRetain_OnAnEngineWithSessions_IsShownAndTakenOver(t *testing.T) {
	retainingSession(t, func(t *testing.T, c *Client, s *sessions) {
		pair(t, c, "a")
		s.rest(core.ShowDelay - time.Millisecond)
		if s.shownFree(t) || s.renewals.Load() != 0 {
			t.Errorf("shown before its time, %d renewals", s.renewals.Load())
		}
		s.rest(2 * time.Millisecond)
		if !s.shownFree(t) || s.renewals.Load() != 1 {
			t.Errorf("not shown in time, %d renewals", s.renewals.Load())
		}
		l := mustLock(t, t.Context(), c, "a")
		left := time.Until(l.Deadline())
		if want := 10*second - 102*time.Millisecond; left != want {
			t.Errorf("%v of trust, want the session's %v", left, want)
		}
		s.rest(core.ClaimDelay)
		if s.shownFree(t) {
			t.Error("somebody holds it, and it is shown as retained")
		}
		before := s.renewals.Load()
		s.rest(30 * second)
		if n := s.renewals.Load(); n != before {
			t.Errorf("%d renewals of a hold that nobody retains", n-before)
		}
		mustUnlock(t, l)
		if n := s.messages(); n != 1 {
			t.Errorf("%d messages, want that of the first Lock", n)
		}
	})
}

// The client asks in each third of the session's time, because the message of a waiter may be lost, or never be sent.
func TestRetain_OnAnEngineWithSessions_AsksWhetherOthersWait(t *testing.T) {
	retainingSession(t, func(t *testing.T, c *Client, s *sessions) {
		pair(t, c, "a")
		s.rest(31 * second)
		const want = 10 // after the first second, and each third of 10 s
		if n := s.renewals.Load(); n != want {
			t.Errorf("%d renewals in 31 s, want %d", n, want)
		}
		if n := s.messages(); n != 1 {
			t.Errorf("%d messages, want that of the first Lock", n)
		}
	})
}

// notThere is Renew of an engine that cannot be reached.
func notThere(_ context.Context, batch []driver.Renewal, done func(int, error)) {
	for i := range batch {
		done(i, errors.New("it is away"))
	}
}

func TestRetain_OnAnEngineWithSessionsThatDoesNotAnswer_GivesBack(t *testing.T) {
	retainingSession(t, func(t *testing.T, c *Client, s *sessions) {
		pair(t, c, "a")
		on(s.hooks, &s.renew, notThere)
		s.rest(core.ShowDelay + time.Millisecond)
		synctest.Wait()
		if n := s.releases.Load(); n != 1 {
			t.Errorf("%d releases, want one of what is in doubt", n)
		}
	})
}

// A renewal that shows the lock as retained, and was not answered, may have been carried out. So the next holder must
// be shown again until that is answered.
func TestRetain_OnAnEngineWithSessions_IsShownAsHeldUntilThatIsAnswered(t *testing.T) {
	retainingSession(t, func(t *testing.T, c *Client, s *sessions) {
		pair(t, c, "a")
		s.rest(core.ShowDelay + time.Millisecond)
		on(s.hooks, &s.renew, notThere)
		l := mustLock(t, t.Context(), c, "a")
		s.rest(second)
		if !s.shownFree(t) {
			t.Fatal("shown as held although the engine was away")
		}
		on(s.hooks, &s.renew, s.Driver.Renew)
		s.rest(2 * second)
		if s.shownFree(t) {
			t.Error("somebody holds it, and it is shown as retained")
		}
		mustUnlock(t, l)
	})
}

// plainDriver is a driver that has no optional method.
type plainDriver struct{ driver.Driver }

func TestNew_OfAnEngineWithSessionsThatRecallsButCannotRenew_IsRefused(t *testing.T) {
	retainingSession(t, func(t *testing.T, _ *Client, s *sessions) {
		if _, err := New(plainDriver{s}, nil); err == nil {
			t.Error("it is not refused")
		}
	})
}
