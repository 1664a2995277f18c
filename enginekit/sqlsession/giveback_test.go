package sqlsession

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

var errRefused = errors.New("refused")

// grudging is a server that refuses to take locks back for so often, and so often to try.
type grudging struct {
	busy
	unlocks, leaves, broken int // refusals that are left
	gone                    []string
	locks                   int
}

func newGrudging(t *testing.T) *grudging {
	s := &grudging{busy: busy{t: t}}
	s.dials = func(context.Context) error { return nil }
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

func (s *grudging) Try(e *Entry) (Answer, error) {
	if s.broken > 0 && e.Request.Name == "x" {
		s.broken--
		return Answer{}, fmt.Errorf("%w: %w", ErrUnsure, errRefused)
	}
	return s.busy.Try(e)
}

func (s *grudging) Unlock(e *Entry) error {
	if s.unlocks > 0 {
		s.unlocks--
		return errRefused
	}
	s.gone = append(s.gone, "unlock "+e.Request.Name)
	return nil
}

func (s *grudging) Leave(e *Entry) error {
	if s.leaves > 0 {
		s.leaves--
		return errRefused
	}
	s.gone = append(s.gone, "leave "+e.Request.Name)
	return nil
}

// lock acquires, with a fatal error if it cannot. lost is told of the end of the hold.
func (s *grudging) lock(name string, lost func(driver.LostReason, error)) *driver.Request {
	s.t.Helper()
	r := request(name)
	s.locks++
	r.ID, r.Lost = fmt.Sprint(name, s.locks), lost
	if _, err := s.core.Acquire(s.t.Context(), r); err != nil {
		s.t.Fatal(err)
	}
	return r
}

func (s *grudging) said(want string) {
	s.t.Helper()
	synctest.Wait()
	if got := fmt.Sprint(s.gone); got != want {
		s.t.Errorf("the server took back %s, want %s", got, want)
	}
}

func releaseOf(r *driver.Request) *driver.Release { return &driver.Release{Key: r.Key, ID: r.ID} }

// A refusal to take one lock back is no reason to end the others of the session.
func TestUnlock_ThatTheServerRefuses_IsAskedAgain_AndEndsNoOtherHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGrudging(t)
		s.lock("y", func(reason driver.LostReason, err error) {
			t.Errorf("the other hold is lost: %s, %v", reason, err)
		})
		x := s.lock("x", nil)
		s.unlocks, s.leaves = 1, 3
		if err := s.core.Release(t.Context(), releaseOf(x)); err != nil {
			t.Error(err)
		}
		s.said("[leave x]")
		if n := s.core.Connections(); n != 1 {
			t.Errorf("%d connections, want the one", n)
		}
	})
}

// With nothing else on the session, its end is the quickest way.
func TestUnlock_ThatTheServerRefuses_WithNothingElseOnTheSession_EndsIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGrudging(t)
		x := s.lock("x", nil)
		s.unlocks, s.leaves = 1, 1000
		var down *driver.UnavailableError
		if err := s.core.Release(t.Context(), releaseOf(x)); !errors.As(err, &down) && !errors.Is(err, driver.ErrLost) {
			t.Errorf("%v, want that nobody knows, or that it is over", err)
		}
		synctest.Wait()
		s.lock("x", nil) // on another session
	})
}

// What a failed try may have left is given back when the server takes it, and until then nobody of this client asks for
// it beside.
func TestTry_ThatMayHaveLeftTheLock_EndsNoOtherHold_AndGivesItBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGrudging(t)
		s.lock("y", func(reason driver.LostReason, err error) {
			t.Errorf("the other hold is lost: %s, %v", reason, err)
		})
		s.broken, s.leaves = 1, 2
		x := request("x")
		var down *driver.UnavailableError
		if _, err := s.core.Acquire(t.Context(), x); !errors.As(err, &down) || !errors.Is(err, errRefused) {
			t.Errorf("%v, want that nobody knows, and why", err)
		}
		beside := request("x")
		beside.ID, beside.Try = "beside", true
		if _, err := s.core.Acquire(t.Context(), beside); !errors.Is(err, driver.ErrHeld) {
			t.Errorf("what may be held was asked for on the same session: %v", err)
		}
		undo := releaseOf(x)
		undo.Undo = true
		if err := s.core.Release(t.Context(), undo); err != nil {
			t.Error(err)
		}
		s.said("[leave x]")
		s.lock("x", nil)
	})
}

// A refusal may last for as long as the process lives. What nobody holds any more does not stay closed for so long
// because the session has other holds: after a timeout it ends, and they are told.
func TestUnlock_ThatIsRefusedForATimeout_EndsTheSession_AndTellsItsHolders(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGrudging(t)
		told := make(chan driver.LostReason, 1)
		s.lock("y", func(reason driver.LostReason, _ error) { told <- reason })
		x := s.lock("x", nil)
		s.unlocks, s.leaves = 1, 1_000_000
		began := time.Now()
		var down *driver.UnavailableError
		if err := s.core.Release(t.Context(), releaseOf(x)); !errors.As(err, &down) || !errors.Is(err, errRefused) {
			t.Errorf("%v, want what the server says", err)
		}
		if took := time.Since(began); took > 2*time.Second {
			t.Errorf("it was told after %v, which is longer than callers wait for one answer", took)
		}
		if reason := <-told; reason != driver.LostSession {
			t.Errorf("the other hold was lost for the reason %q", reason)
		}
		if took := time.Since(began); took < s.core.config.Timeout || took > s.core.config.Timeout+refusedMost {
			t.Errorf("the session ended after %v, with a timeout of %v", took, s.core.config.Timeout)
		}
	})
}

// While a session refuses, it gets no further locks, and it ends with the last one that it has.
func TestUnlock_ThatIsRefused_HasTheSessionEndWithItsLastHold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newGrudging(t)
		y := s.lock("y", func(reason driver.LostReason, err error) {
			t.Errorf("the other hold is lost: %s, %v", reason, err)
		})
		x := s.lock("x", nil)
		s.unlocks, s.leaves = 1, 1_000_000
		if err := s.core.Release(t.Context(), releaseOf(x)); !errors.Is(err, errRefused) {
			t.Errorf("%v, want what the server says", err)
		}
		before := s.connOf(y)
		if z := s.lock("z", nil); s.connOf(z) == before {
			t.Error("a session that refuses has got a further lock")
		}
		if err := s.core.Release(t.Context(), releaseOf(y)); err != nil {
			t.Error(err)
		}
		<-before.done // long before the timeout
	})
}

// connOf is the connection on which a request is held.
func (s *grudging) connOf(r *driver.Request) *Conn {
	s.core.mu.Lock()
	defer s.core.mu.Unlock()
	return s.core.entries[r.ID].c
}
