package sqlsession

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// tidied counts the looks at old rows.
type tidied struct {
	grudging
	prunes atomic.Int32
}

func (s *tidied) Prune() { s.prunes.Add(1) }

func newTidied(t *testing.T) *tidied {
	s := &tidied{}
	s.t, s.dials = t, func(context.Context) error { return nil }
	s.core = New(Config{
		Timeout: time.Hour, Shared: 1, Waits: 1, Quiet: time.Millisecond,
		Warn: func(string, string, error) {},
	}, s)
	t.Cleanup(func() { _ = s.core.Close() }) // it never fails
	c, err := s.open(false)
	if err != nil {
		t.Fatal(err)
	}
	c.session = s
	s.core.AddShared(c)
	s.free.Store(true)
	return s
}

// grant grants a lock so often and says how many looks there were by then.
func (s *tidied) grant(times int) int32 {
	for range times {
		if err := s.core.Release(s.t.Context(), releaseOf(s.lock("x", nil))); err != nil {
			s.t.Error(err)
		}
	}
	synctest.Wait()
	return s.prunes.Load()
}

// Grants may make rows, so they have old ones looked at: a client need not live for the ten minutes after which it
// looks anyway.
func TestGrants_HaveOldRowsLookedAt_NowAndThen(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newTidied(t)
		if n := s.grant(pruneGrants); n != 1 {
			t.Errorf("%d looks after %d grants, want one", n, pruneGrants)
		}
		if n := s.grant(2 * pruneGrants); n != 1 {
			t.Errorf("%d looks within the pause, want one", n)
		}
		time.Sleep(pruneCooldown) // virtual
		if n := s.grant(1); n != 2 {
			t.Errorf("%d looks after the pause, want two", n)
		}
	})
}

// Clients that live for one grant look in their turn.
func TestClientsOfOneGrant_LookTogetherAsOftenAsOneThatGoesOn(t *testing.T) {
	const clients = 100 * pruneGrants
	looks := 0
	for range clients {
		d := New(Config{}, nil)
		d.mu.Lock()
		if d.countGrant() {
			looks++
		}
		d.mu.Unlock()
		d.stop()
	}
	if looks < 50 || looks > 150 { // five times the standard deviation
		t.Errorf("%d clients looked %d times, want about %d", clients, looks, clients/pruneGrants)
	}
}
