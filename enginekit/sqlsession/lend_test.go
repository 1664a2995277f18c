package sqlsession

import (
	"context"
	"errors"
	"io"
	"net"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// Who asks waits for the answer himself, and the connection's goroutine has nothing to do with it.
func TestLent_TheAnswerComesToWhoAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLender(t)
		go s.answer(2)
		r := request("x")
		if g, err := s.core.Acquire(t.Context(), r); err != nil || g.Token != 7 {
			t.Fatalf("%+v, %v", g, err)
		}
		if err := s.core.Release(t.Context(), &driver.Release{Key: r.Key, ID: r.ID}); err != nil {
			t.Fatal(err)
		}
		if s.here.Load() != 2 || s.tries.Load() != 0 || s.unlocked.Load() != 0 {
			t.Errorf("%d answers where they were wanted, %d tries and %d releases by the connection's goroutine",
				s.here.Load(), s.tries.Load(), s.unlocked.Load())
		}
	})
}

// Whoever leaves is not kept by a server that hangs. His question goes on, and what it brings is given back.
func TestLent_WhoLeaves_LeavesTheQuestionToTheConnection(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLender(t)
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		begun, r := time.Now(), request("x")
		if _, err := s.core.Acquire(ctx, r); !errors.Is(err, context.DeadlineExceeded) {
			t.Fatal(err)
		}
		if late := time.Since(begun) - time.Second; late > 10*time.Millisecond {
			t.Errorf("it returned %v after its context", late)
		}
		undone := make(chan error, 1)
		go func() { // ends with the answers
			undone <- s.core.Release(t.Context(), &driver.Release{Key: r.Key, ID: r.ID, Undo: true})
		}()
		synctest.Wait()
		s.answer(2)
		if err := <-undone; err != nil {
			t.Error(err)
		}
		if s.here.Load() != 0 || s.tries.Load() != 1 || s.unlocked.Load() != 1 {
			t.Errorf("%d answers in the goroutine that left, %d tries and %d releases, want 0, 1 and 1", s.here.Load(),
				s.tries.Load(), s.unlocked.Load())
		}
	})
}

// What is to be done meanwhile is done when the connection is back, and nothing is asked side by side.
func TestLent_OthersWaitUntilItIsBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, begun := newLender(t), time.Now()
		first, second := s.beginFor("x"), s.beginFor("y")
		synctest.Wait()
		if n := s.asking.Load(); n != 1 {
			t.Fatalf("%d questions at once", n)
		}
		s.answer(2)
		if err := errors.Join(<-first, <-second); err != nil {
			t.Error(err)
		}
		if waited := time.Since(begun); waited != 0 { // it is virtual
			t.Errorf("the second question was asked %v after the connection came back", waited)
		}
		if s.here.Load() != 1 || s.tries.Load() != 1 {
			t.Errorf("%d and %d were asked, want one here and one by the connection's goroutine", s.here.Load(),
				s.tries.Load())
		}
	})
}

// A connection that ends while it is lent ends for all who want something of it.
func TestLent_AConnectionThatEnds_IsToldToWhoHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newLender(t)
		got := s.beginFor("x")
		synctest.Wait()
		s.there.Close()
		var down *driver.UnavailableError
		if err := <-got; !errors.As(err, &down) {
			t.Errorf("%v, want that nobody knows", err)
		}
		synctest.Wait()
		if n := s.core.Connections(); n != 0 {
			t.Errorf("%d connections are left", n)
		}
	})
}

// lender has one connection, which can be lent, to a server that answers when the test says so.
type lender struct {
	busy
	raw, there   net.Conn
	here, asking atomic.Int32
}

func newLender(t *testing.T) *lender {
	s := &lender{busy: busy{t: t, dials: func(context.Context) error { return io.ErrUnexpectedEOF }}}
	s.core = New(Config{
		Timeout: time.Hour, Shared: 1, Waits: 1, Quiet: time.Millisecond,
		Warn: func(string, string, error) {},
	}, s)
	t.Cleanup(func() { _ = s.core.Close() }) // it never fails
	s.raw, s.there = net.Pipe()
	c := s.core.NewConn(s.raw, false, s)
	if err := s.core.Adopt(c, nil); err != nil {
		t.Fatal(err)
	}
	s.core.AddShared(c)
	synctest.Wait() // until its goroutine rests
	return s
}

func request(name string) *driver.Request {
	return &driver.Request{Key: driver.Key{Kind: driver.KindMutex, Name: name}, ID: "of " + name}
}

// answer has the server answer so often.
func (s *lender) answer(times int) {
	for range times {
		if _, err := s.there.Write([]byte{1}); err != nil {
			s.t.Error(err)
		}
	}
}

// hear waits for an answer.
func (s *lender) hear() error {
	if n := s.asking.Add(1); n != 1 {
		s.t.Errorf("%d questions at once", n)
	}
	defer s.asking.Add(-1)
	_, err := s.raw.Read(make([]byte, 1))
	return err
}

func (s *lender) TryHere(*Entry) (a Answer, granted bool) {
	if s.hear() != nil {
		return a, false
	}
	s.here.Add(1)
	return Answer{Granted: true, Token: 7, Tokens: 1}, true
}

func (s *lender) UnlockHere(*Entry) bool {
	if s.hear() != nil {
		return false
	}
	s.here.Add(1)
	return true
}

func (s *lender) Try(e *Entry) (Answer, error) {
	s.tries.Add(1)
	if err := s.hear(); err != nil {
		e.c.Fail(err)
		return Answer{}, err
	}
	return Answer{Granted: true, Token: 7, Tokens: 1}, nil
}

func (s *lender) Unlock(*Entry) error {
	s.unlocked.Add(1)
	return s.hear()
}
