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

func TestLead_AfterALoss_LeadsAgain_AndEndsWithTheWork(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		terms, done := 0, errors.New("done")
		e := c.Election("a", &LockOptions{Wait: time.Second})
		err := e.Lead(t.Context(), "me", func(ctx context.Context) error {
			terms++
			leader, err := c.Election("a", nil).Leader(ctx)
			if err != nil || leader.Value != "me" {
				t.Errorf("while it leads: %+v, %v", leader, err)
			}
			if terms == 2 {
				return done
			}
			if err := c.Break(ctx, KindElection, "a", leader.Token); err != nil {
				t.Error(err)
			}
			<-ctx.Done()
			wantLost(t, context.Cause(ctx), LostBroken)
			return context.Cause(ctx)
		})
		if !errors.Is(err, done) || errors.Is(err, ErrLost) || terms != 2 {
			t.Errorf("%d terms, %v", terms, err)
		}
		if _, err := c.Election("a", nil).Leader(t.Context()); !errors.Is(err, ErrNoLeader) {
			t.Errorf("it did not resign: %v", err)
		}
	})
}

func TestLead_WhoseContextEndsDuringACampaign_ReturnsItsCause(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		leader := must(t)(peer(t, h, nil).Election("a", nil).Campaign(t.Context(), "other"))
		why := errors.New("why")
		ctx, cancel := context.WithCancelCause(t.Context())
		got := make(chan error, 1)
		go func() {
			// A Wait does not end it.
			e := c.Election("a", &LockOptions{Wait: time.Second})
			got <- e.Lead(ctx, "me", func(context.Context) error { t.Error("the work ran"); return nil })
		}()
		time.Sleep(time.Minute) // virtual
		synctest.Wait()
		cancel(why)
		if err := <-got; !errors.Is(err, why) {
			t.Errorf("got %v", err)
		}
		mustUnlock(t, leader)
	})
}

func TestLead_WhileTheEngineDoesNotAnswer_GoesOnAsking(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		asked := 0
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			if asked++; asked < 5 {
				return driver.Grant{}, &driver.UnavailableError{Err: errors.New("connection refused"), NotSent: true}
			}
			return h.Driver.Acquire(ctx, r)
		})
		ran := false
		err := c.Election("a", nil).Lead(t.Context(), "", func(context.Context) error { ran = true; return nil })
		if err != nil || !ran {
			t.Errorf("ran %v, %v", ran, err)
		}
	})
}

func TestLead_WhatCannotBeRight_EndsIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		fn := func(context.Context) error { t.Error("the work ran"); return nil }
		if err := c.Election("a", nil).Lead(t.Context(), string(make([]byte, 300)), fn); err == nil {
			t.Error("a value that is too long")
		}
		if err := c.Election("", nil).Lead(t.Context(), "", fn); err == nil {
			t.Error("a name that is empty")
		}
		if err := c.Election("a", nil).Lead(t.Context(), "", nil); !errors.Is(err, shell.ErrNoFunction) {
			t.Errorf("no function: %v", err)
		}
		defer func() {
			if recover() == nil {
				t.Error("the panic was swallowed")
			}
			if _, err := c.Election("a", nil).Leader(t.Context()); !errors.Is(err, ErrNoLeader) {
				t.Errorf("after a panic: %v", err)
			}
		}()
		_ = c.Election("a", nil).Lead(t.Context(), "", func(context.Context) error { panic("x") })
	})
}
