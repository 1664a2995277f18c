package interlock

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/shell"
)

// stage is an election that first leads, by other, and for which a candidate waits until giveUp is called.
type stage struct {
	h      *hooks
	other  *Client
	first  *Lease
	wait   <-chan outcome
	giveUp func()
}

// withdrawing runs f on engines that answer a wait in the caller's goroutine and in one of their own. first leads
// there, and candidate waits until giveUp is called.
func withdrawing(t *testing.T, f func(t *testing.T, s *stage)) {
	for name, wrap := range map[string]func(h *hooks) driver.Driver{
		"local":      func(h *hooks) driver.Driver { return h.Driver },
		"remote":     func(h *hooks) driver.Driver { return h },
		"that waits": func(h *hooks) driver.Driver { return &leading{h} },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
				c, other := mustNew(t, wrap(h), nil), peer(t, h, nil)
				defer c.Close()
				first := mustLead(t, other, "first")
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				wait := candidate(ctx, c, "candidate")
				synctest.Wait()
				f(t, &stage{h, other, first, wait, cancel})
			})
		})
	}
}

func TestCampaign_ThatHasGivenUp_LeadsForNobody(t *testing.T) {
	withdrawing(t, func(t *testing.T, s *stage) {
		s.giveUp()
		if o := <-s.wait; !errors.Is(o.err, ErrHeld) || !errors.Is(o.err, context.Canceled) {
			t.Fatalf("Campaign: %v, %v", o.lease, o.err)
		}
		mustUnlock(t, s.first)
		if l, err := s.other.Election("boss", nil).Leader(t.Context()); !errors.Is(err, ErrNoLeader) {
			t.Errorf("%+v leads: %v", l, err)
		}
	})
}

func TestCampaign_ThatGivesUpWhileTheLeaderResigns_LeadsIfItWasNamed(t *testing.T) {
	withdrawing(t, func(t *testing.T, s *stage) {
		s.giveUp()
		mustUnlock(t, s.first) // before the candidate's goroutine has seen that its context has ended
		l, _ := s.other.Election("boss", nil).Leader(t.Context())
		o := <-s.wait
		if named := l.Value == "candidate"; named != (o.err == nil) {
			t.Errorf("named as the leader: %v; Campaign: %v", named, o.err)
		}
		if o.err == nil {
			mustUnlock(t, o.lease)
		}
	})
}

func TestCampaign_ThatGivesUpWhileTheEngineIsSilent_WaitsNoLongerThanUnlock(t *testing.T) {
	withdrawing(t, func(t *testing.T, s *stage) {
		on(s.h, &s.h.release, func(ctx context.Context, _ *driver.Release) error { <-ctx.Done(); return ctx.Err() })
		start := time.Now()
		s.giveUp()
		if o := <-s.wait; !errors.Is(o.err, context.Canceled) || time.Since(start) > shell.UnlockGrace {
			t.Errorf("after %v: %v", time.Since(start), o.err)
		}
		on(s.h, &s.h.release, s.h.Driver.Release)
		mustUnlock(t, s.first)
	})
}

// A request that has failed may have been granted. A candidate that gives up before the next one waits for its undo.
func TestCampaign_ThatGivesUpBetweenTwoRequests_WaitsForTheUndoOfTheFirst(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.acquire, func(_ context.Context, r *driver.Request) (driver.Grant, error) {
			r.Waiting(&HeldError{Kind: r.Kind, Name: r.Name})
			return driver.Grant{}, errors.New("connection lost")
		})
		undo := make(chan struct{})
		on(h, &h.release, func(ctx context.Context, r *driver.Release) error {
			<-undo
			return h.Driver.Release(ctx, r)
		})
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		wait := candidate(ctx, c, "candidate")
		synctest.Wait()
		cancel()
		stillWaits(t, wait, "before the undo")
		close(undo)
		if o := <-wait; !errors.Is(o.err, context.Canceled) {
			t.Errorf("Campaign: %v", o.err)
		}
		on(h, &h.acquire, h.Driver.Acquire)
		on(h, &h.release, h.Driver.Release)
	})
}
