package interlock

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// pinged is a session whose last confirmed sign of life the test sets.
type pinged struct{ at atomic.Pointer[time.Time] }

func (p *pinged) Confirmed() time.Time { return *p.at.Load() }

func (p *pinged) ping() {
	now := time.Now()
	p.at.Store(&now)
}

// sessions is the memory engine with holds that end with a session of 10 s.
type sessions struct {
	*hooks
	pinged pinged
	lost   atomic.Pointer[func(LostReason, error)]
}

func (s *sessions) Traits() driver.Traits {
	t := s.hooks.Traits()
	t.Lifetime, t.Timeout = driver.Sessions, 10*second
	return t
}

func (s *sessions) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	lost := r.Lost
	s.lost.Store(&lost)
	r.Lease = time.Hour
	g, err := s.hooks.Acquire(ctx, r)
	g.Lease, g.Session = 10*second, &s.pinged
	return g, err
}

func sessionBubble(t *testing.T, f func(t *testing.T, c *Client, s *sessions)) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		s := &sessions{hooks: h}
		s.pinged.ping()
		c := mustNew(t, s, nil)
		defer c.Close()
		f(t, c, s)
	})
}

func TestSessionEngine_TrustFollowsTheSignsOfLife(t *testing.T) {
	sessionBubble(t, func(t *testing.T, c *Client, s *sessions) {
		l := mustLock(t, t.Context(), c, "a")
		for range 10 {
			time.Sleep(5 * second) // virtual
			s.pinged.ping()
		}
		if err := l.Err(); err != nil {
			t.Fatalf("lost although the session lives: %v", err)
		}
		want := time.Now().Add(10*second - 102*time.Millisecond)
		if !l.Deadline().Equal(want) {
			t.Errorf("deadline in %v", time.Until(l.Deadline()))
		}
		<-l.Lost() // no more signs of life
		if !time.Now().Equal(want) {
			t.Errorf("lost %v after the deadline", time.Since(want))
		}
		wantLost(t, l.Err(), LostUnconfirmed)
		if n := s.renewals.Load(); n != 0 {
			t.Errorf("%d renewals on an engine without leases", n)
		}
	})
}

func TestSessionEngine_TellsOfTheEndOfTheSession(t *testing.T) {
	sessionBubble(t, func(t *testing.T, c *Client, s *sessions) {
		l := mustLock(t, t.Context(), c, "a")
		gone := errors.New("connection reset")
		(*s.lost.Load())(LostSession, gone)
		wantLost(t, l.Err(), LostSession)
		if !errors.Is(l.Err(), gone) {
			t.Errorf("the cause is missing: %v", l.Err())
		}
	})
}

func TestSessionEngine_RefusesALeaseOfItsOwn_UnlessTheCoreCanEnforceIt(t *testing.T) {
	sessionBubble(t, func(t *testing.T, c *Client, _ *sessions) {
		if _, err := c.Mutex("a", &LockOptions{Lease: 3 * second}).Lock(t.Context()); !errors.Is(err, ErrUnsupported) {
			t.Errorf("got %v", err)
		}
		start := time.Now()
		l, err := c.Mutex("a", &LockOptions{Lease: 3 * second, NoRenew: true}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if err := l.Extend(t.Context(), 5*second); err != nil {
			t.Fatal(err)
		}
		<-l.Lost()
		wantLost(t, l.Err(), LostExpired)
		if got := time.Since(start); got != 5*second {
			t.Errorf("ended after %v", got)
		}
		mustUnlock(t, mustLock(t, t.Context(), c, "a")) // and was given back
	})
}

// forever is the memory engine with holds that last as long as the process.
type forever struct{ *hooks }

func (f *forever) Traits() driver.Traits {
	t := f.hooks.Traits()
	t.Lifetime = driver.Process
	return t
}

func (f *forever) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	r.Lease = 1000 * time.Hour
	g, err := f.hooks.Acquire(ctx, r)
	g.Sent, g.Lease = time.Time{}, 0
	return g, err
}

func TestProcessEngine_HasNoDeadlineUnlessAsked(t *testing.T) {
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c := mustNew(t, &forever{h}, nil)
		defer c.Close()
		l := mustLock(t, t.Context(), c, "a")
		time.Sleep(24 * time.Hour) // virtual
		if l.Err() != nil || !l.Deadline().IsZero() {
			t.Errorf("after a day: %v, deadline %v", l.Err(), l.Deadline())
		}
		if err := l.Extend(t.Context(), time.Hour); err != nil || !l.Deadline().IsZero() {
			t.Errorf("Extend: %v, deadline %v", err, l.Deadline())
		}
		mustUnlock(t, l)
		l, err := c.Mutex("a", &LockOptions{MaxHold: second}).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		<-l.Lost()
		wantLost(t, l.Err(), LostExpired)
	})
}
