package interlock

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"

	"github.com/interlock-go/interlock/driver"
)

// refused answers every renewal with "connection refused", as if the server's port were closed.
func refused(_ context.Context, batch []driver.Renewal, done func(int, error)) {
	for i, r := range batch {
		done(i, &UnavailableError{
			Op: "renew", Name: r.Name,
			Err: fmt.Errorf("dial tcp 127.0.0.1:1: %w", syscall.ECONNREFUSED),
		})
	}
}

// denied answers every renewal with a RefusedError, as a server does that has taken a right away.
func denied(_ context.Context, batch []driver.Renewal, done func(int, error)) {
	for i, r := range batch {
		done(i, &RefusedError{Op: "renew", Name: r.Name, Err: errBug, Hint: "give it the right"})
	}
}

func TestLostError_CarriesHowTheLastRenewalFailed(t *testing.T) {
	log := &records{Handler: slog.DiscardHandler}
	bubble(t, nil, func(t *testing.T, _ *Client, h *hooks) {
		c := mustNew(t, h, &Options{Logger: slog.New(log)})
		defer c.Close()
		l := must(t)(c.Mutex("a", &LockOptions{Class: "order"}).Lock(WithOwner(t.Context(), "me")))
		on(h, &h.renew, refused)
		<-l.Lost()
		err := l.Unlock(t.Context())
		wantLost(t, err, LostUnconfirmed)
		if !errors.Is(err, syscall.ECONNREFUSED) ||
			!strings.HasSuffix(err.Error(), "the last renewal: dial tcp 127.0.0.1:1: connection refused") {
			t.Errorf("got %v", err)
		}
		synctest.Wait()
		if !log.has("lock lost", "kind=mutex", "lock=a", "class=order", "owner=me", "held=29", "reason=unconfirmed",
			"connection refused") {
			t.Errorf("logged %q", log.all[len(log.all)-1])
		}
		c.in().Lock()
		if len(c.in().Failures) > 0 {
			t.Errorf("kept: %v", c.in().Failures)
		}
		c.in().Unlock()
	})
}

// The four failures are never mixed. A loss matches ErrLost alone, whatever its cause is.
func TestLostError_IsNothingButALoss(t *testing.T) {
	for name, renew := range map[string]func(context.Context, []driver.Renewal, func(int, error)){
		"refused": refused, "denied": denied, "hung": noRenewals,
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				on(h, &h.renew, renew)
				err := c.Do(t.Context(), "a", func(ctx context.Context) error {
					<-ctx.Done()
					return nil
				})
				wantLost(t, err, LostUnconfirmed) // although Do is silent about an engine that does not answer
				var unavailable *UnavailableError
				var refused *RefusedError
				for _, other := range []error{
					ErrUnavailable, ErrRefused, ErrHeld, ErrReleased, context.Canceled,
					context.DeadlineExceeded,
				} {
					if errors.Is(err, other) {
						t.Errorf("%v matches %v", err, other)
					}
				}
				if errors.As(err, &unavailable) || errors.As(err, &refused) {
					t.Errorf("%v is also %v, %v", err, unavailable, refused)
				}
				if !strings.Contains(err.Error(), "the last renewal: ") {
					t.Errorf("got %v", err)
				}
			})
		})
	}
}

func TestLostError_AfterARenewalThatWasConfirmed_CarriesNoEarlierFailure(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		on(h, &h.renew, func(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
			on(h, &h.renew, h.Driver.Renew)
			refused(ctx, batch, done)
		})
		<-later(func() (*Lease, error) { return l, l.Extend(t.Context(), 20*second) })
		if err := l.Extend(t.Context(), 20*second); err != nil {
			t.Error(err)
		}
		c.in().Lock()
		if len(c.in().Failures) > 0 {
			t.Errorf("kept: %v", c.in().Failures)
		}
		c.in().Unlock()
		mustUnlock(t, l)
	})
}

func TestDo_TellsALossOnce(t *testing.T) {
	returns := map[string]func(ctx context.Context) error{
		"nothing":             func(context.Context) error { return nil },
		"the cause":           context.Cause,
		"the cause, wrapped":  func(ctx context.Context) error { return fmt.Errorf("deduct: %w", context.Cause(ctx)) },
		"an error of its own": func(context.Context) error { return errBug },
	}
	for what, of := range returns {
		t.Run(what, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				on(h, &h.renew, refused)
				fn := func(ctx context.Context) error {
					<-ctx.Done()
					return of(ctx)
				}
				_, tried := c.Mutex("c", nil).TryDo(t.Context(), fn)
				for verb, err := range map[string]error{
					"Do": c.Do(t.Context(), "a", fn), "TryDo": tried,
					"Multi.Do": c.Multi([]string{"b"}, nil).Do(t.Context(), fn),
				} {
					wantLost(t, err, LostUnconfirmed)
					if strings.Count(err.Error(), "was lost") != 1 {
						t.Errorf("%s: %v", verb, err)
					}
				}
			})
		})
	}
}

func TestASecondUnlock_NamesTheLock(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		both, err := c.Multi([]string{"b", "c"}, nil).Lock(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		read := must(t)(c.RWMutex("d", nil).UpgradeableRLock(t.Context()))
		mustUnlock(t, l)
		mustUnlock(t, read)
		if err := both.Unlock(t.Context()); err != nil {
			t.Error(err)
		}
		_, pending := l.Pending()
		for says, err := range map[string]error{
			`unlock "a"`: l.Unlock(t.Context()), `unlock "b", "c"`: both.Unlock(t.Context()),
			`abandon "a"`: l.Abandon(),
			`extend "a"`:  l.Extend(t.Context(), second), `use "a"`: pending, `upgrade "d"`: read.Upgrade(t.Context()),
		} {
			if !errors.Is(err, ErrReleased) || !strings.Contains(err.Error(), says) {
				t.Errorf("%s: %v", says, err)
			}
		}
	})
}

func TestCond_WithALeaseOfAnotherClient_SaysSo(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), peer(t, h, nil), "a")
		if _, err := condOf(c).Wait(t.Context(), l); !errors.Is(err, ErrNotHeld) ||
			!strings.Contains(err.Error(), "another client") {
			t.Errorf("got %v", err)
		}
		mustUnlock(t, l)
	})
}
