package sqlsession

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// stale is a server that grants a wait, whose answer the client reads late. Pings are refused.
type stale struct {
	busy
	waits *Conn
}

func (s *stale) Dial(ctx context.Context, waits bool) (*Conn, error) {
	c, err := s.busy.Dial(ctx, waits)
	if c != nil {
		c.session = s
	}
	return c, err
}

func (s *stale) Wait(e *Entry) (Answer, error) {
	s.waits = e.c
	e.c.Sent(time.Hour)
	<-time.After(s.core.config.Timeout / 2) // the process stands still
	_ = e.c.Answered(nil, false)
	return s.busy.Wait(e)
}

// A ping that is refused says nothing about the session, so it does not make an old answer to a wait a grant.
func TestWait_WhoseAnswerIsOld_AndWhosePingIsRefused_IsNoGrant(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := &stale{busy: busy{t: t}}
		s.dials = func(context.Context) error { return nil }
		s.core = New(Config{
			Timeout: time.Hour, Shared: 1, Waits: 1, Quiet: time.Millisecond, Signs: time.Hour,
			Warn: func(string, string, error) {},
		}, s)
		t.Cleanup(func() { _ = s.core.Close() }) // it never fails
		c, err := s.open(false)
		if err != nil {
			t.Fatal(err)
		}
		s.core.AddShared(c)
		if _, err := s.core.Acquire(t.Context(), request("x")); !errors.Is(err, driver.ErrUnavailable) {
			t.Fatalf("%v, want that nobody knows whether it is held", err)
		}
		<-s.waits.done // so that the server frees what it may have given
	})
}
