package interlock

import (
	"context"
	"errors"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

// An engine that finds no such hold guesses how it ended. If a copy of the release may have been carried out, that is
// how; otherwise, and where the engine remembers another end, it is a loss.
func TestUnlock_WhoseCopyFindsNothing_IsALossOnlyIfNoCopyCanHaveEndedIt(t *testing.T) {
	reset, unsent := errors.New("connection reset"), &driver.UnavailableError{Op: "release", NotSent: true}
	for name, row := range map[string]struct {
		first error // of the copy before
		then  driver.LostReason
		lost  bool
	}{
		"carried out, and another came": {reset, LostTaken, false},
		"carried out":                   {reset, LostExpired, false},
		"broken meanwhile":              {reset, LostBroken, true},
		"its session ended":             {reset, LostSession, true},
		"never sent":                    {unsent, LostTaken, true},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				l := mustLock(t, t.Context(), c, "a")
				on(h, &h.release, func(context.Context, *driver.Release) error {
					on(h, &h.release, func(_ context.Context, r *driver.Release) error {
						return &LostError{Kind: r.Kind, Name: r.Name, Reason: row.then}
					})
					return row.first
				})
				err := l.Unlock(t.Context())
				switch {
				case row.lost:
					wantLost(t, err, row.then)
				case err != nil:
					t.Errorf("got %v", err)
				}
				on(h, &h.release, h.Driver.Release)
			})
		})
	}
}

func TestDowngrade_WhoseReplyIsLostBesideItsOwnRead_KeepsTheRead(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		up := must(t)(c.RWMutex("x", nil).UpgradeableRLock(t.Context()))
		if err := up.Upgrade(t.Context()); err != nil {
			t.Fatal(err)
		}
		on(h, &h.release, func(ctx context.Context, r *driver.Release) error {
			on(h, &h.release, func(ctx context.Context, r *driver.Release) error { // it infers this from the read
				on(h, &h.release, h.Driver.Release)
				return &LostError{Kind: r.Kind, Name: r.Name, Reason: LostTaken}
			})
			if err := h.Driver.Release(ctx, r); err != nil {
				return err
			}
			return errors.New("connection reset")
		})
		if err := up.Downgrade(t.Context()); err != nil || up.Err() != nil || !isShared(t, up) {
			t.Errorf("got %v, and the read: %v", err, up.Err())
		}
		mustUnlock(t, up)
	})
}
