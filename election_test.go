package interlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/shell"
)

// candidate campaigns in a goroutine, and returns where the outcome will be.
func candidate(ctx context.Context, c *Client, value string) <-chan outcome {
	out := make(chan outcome, 1)
	go func() {
		l, err := c.Election("boss", nil).Campaign(ctx, value)
		out <- outcome{l, err}
	}()
	return out
}

func mustLead(t *testing.T, c *Client, value string) *Lease {
	t.Helper()
	l, err := c.Election("boss", nil).Campaign(t.Context(), value)
	if err != nil {
		t.Fatalf("Campaign(%q): %v", value, err)
	}
	return l
}

func wantLeader(t *testing.T, c *Client, want *Lease, value string) {
	t.Helper()
	got, err := c.Election("boss", nil).Leader(t.Context())
	if err != nil || got.Value != value || got.Token != want.Token() ||
		got.Client != shell.ClientOf(want.hold().Lock).Config.ClientName {
		t.Errorf("the leader is %+v, %v; want %q with token %d", got, err, value, want.Token())
	}
}

func TestCampaign_OneLeads_WithItsValue_AndTheNextFollows(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, &Options{ClientName: "other:1"})
		if _, err := c.Election("boss", nil).Leader(t.Context()); !errors.Is(err, ErrNoLeader) {
			t.Errorf("before anybody has campaigned: %v", err)
		}
		first := mustLead(t, c, "host-1")
		// Two candidates of one process have values of their own, so neither may stand in line for the other.
		second := candidate(t.Context(), other, "host-2")
		synctest.Wait()
		third := candidate(t.Context(), other, "host-3")
		synctest.Wait()
		wantLeader(t, other, first, "host-1")
		mustUnlock(t, first)
		next := <-second
		if next.err != nil || next.lease.Token() <= first.Token() || next.lease.Kind() != KindElection {
			t.Fatalf("the second term: %+v", next)
		}
		wantLeader(t, c, next.lease, "host-2")
		mustUnlock(t, next.lease)
		last := <-third
		wantLeader(t, c, last.lease, "host-3")
		mustUnlock(t, last.lease)
	})
}

func TestTryCampaign_LeadsAtOnce_OrSaysWhoDoes(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, &Options{ClientName: "other:1"})
		first, err := c.Election("boss", nil).TryCampaign(t.Context(), "host-1")
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var held *HeldError
		l, err := other.Election("boss", nil).TryCampaign(t.Context(), "host-2")
		if l != nil || !errors.As(err, &held) || held.Token != first.Token() || time.Since(start) > 0 {
			t.Errorf("beside a leader: %v, %v after %v; want a *HeldError of token %d at once", l, err,
				time.Since(start), first.Token())
		}
		if _, err := other.Election("boss", nil).TryCampaign(t.Context(), strings.Repeat("v", 256)); err == nil ||
			errors.Is(err, ErrHeld) {
			t.Errorf("with a value that is too long: %v", err)
		}
		mustUnlock(t, first)
		next, err := other.Election("boss", nil).TryCampaign(t.Context(), "host-2")
		if err != nil {
			t.Fatal(err)
		}
		wantLeader(t, c, next, "host-2")
		mustUnlock(t, next)
	})
}

func TestCampaign_WhoGivesUp_LeavesTheNextItsOwnValue(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, &Options{ClientName: "other:1"})
		first := mustLead(t, c, "host-1")
		ctx, cancel := context.WithCancel(t.Context())
		second := candidate(ctx, other, "host-2")
		synctest.Wait()
		third := candidate(t.Context(), other, "host-3")
		synctest.Wait()
		cancel()
		if got := <-second; !errors.Is(got.err, context.Canceled) || !errors.Is(got.err, ErrHeld) {
			t.Errorf("who gave up: %v", got.err)
		}
		mustUnlock(t, first)
		last := <-third
		wantLeader(t, c, last.lease, "host-3")
		mustUnlock(t, last.lease)
	})
}

func TestCampaign_TheTermStaysWithTheValue_AlsoWhenRenewed(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		lease := mustLead(t, c, "host-1")
		again, err := c.Election("boss", nil).Campaign(lease.Context(t.Context()), "host-2")
		if err != nil || again.Token() != lease.Token() {
			t.Fatalf("the leader campaigns again: %v", err)
		}
		time.Sleep(time.Minute)
		wantLeader(t, c, lease, "host-1")
		mustUnlock(t, lease)
		time.Sleep(time.Minute)
		wantLeader(t, c, again, "host-1")
		mustUnlock(t, again)
	})
}

func TestCampaign_RefusesWhatCannotBe(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		for value, says := range map[string]string{
			strings.Repeat("x", MaxElectionValue+1): "at most 255 bytes",
			"\xff":                                  "UTF-8",
		} {
			if _, err := c.Election("boss", nil).Campaign(t.Context(), value); err == nil ||
				!strings.Contains(err.Error(), says) {
				t.Errorf("%.5q: %v", value, err)
			}
		}
		_, err := c.Election("boss", &LockOptions{Label: "x"}).Campaign(t.Context(), "v")
		if !errors.Is(err, ErrUnsupported) || !strings.Contains(err.Error(), "Label") {
			t.Errorf("with a label: %v", err)
		}
		if _, err := c.Election("", nil).Leader(t.Context()); err == nil || !strings.Contains(err.Error(), "is empty") {
			t.Errorf("without a name: %v", err)
		}
		mustUnlock(t, mustLead(t, c, strings.Repeat("x", MaxElectionValue)))
	})
}

func TestCampaign_ALostTermEndsItsContext(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, _ *hooks) {
		lease := mustLead(t, c, "host-1")
		work := lease.Context(t.Context())
		if err := c.Break(t.Context(), KindElection, "boss", lease.Token()); err != nil {
			t.Fatal(err)
		}
		<-work.Done()
		wantLost(t, context.Cause(work), LostBroken)
		_ = lease.Unlock(t.Context())
	})
}

func TestCampaign_OfAnOwnerWhoLeadsByThen_AddsAHoldToItsTerm(t *testing.T) {
	for name, in := range map[string]func(t *testing.T, c *Client) context.Context{
		"anonymous": func(t *testing.T, c *Client) context.Context {
			return mustLock(t, t.Context(), c, "a").Context(t.Context())
		},
		"named": func(t *testing.T, _ *Client) context.Context { return WithOwner(t.Context(), "host-1") },
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				other := peer(t, h, nil)
				owner, cancel := context.WithTimeout(in(t, c), time.Hour) // virtual
				defer cancel()
				leader := mustLead(t, other, "other")
				one := candidate(owner, c, "host-1")
				synctest.Wait()
				two := candidate(owner, c, "host-2")
				synctest.Wait()
				stranger := candidate(t.Context(), other, "other")
				synctest.Wait()
				mustUnlock(t, leader)
				first, second := <-one, <-two // neither waits for the other to resign
				if first.err != nil || second.err != nil || first.lease.Token() != second.lease.Token() {
					t.Fatalf("the owner's two candidates: %+v, %+v", first, second)
				}
				wantLeader(t, other, first.lease, "host-1")
				mustUnlock(t, first.lease)
				synctest.Wait()
				stillWaits(t, stranger, "while the owner has the other hold")
				mustUnlock(t, second.lease)
				mustUnlock(t, woken(t, "the stranger", stranger))
			})
		})
	}
}

func TestLeader_WhoHasResignedWithinItsMinHold_LeadsNoMore(t *testing.T) {
	resting(t, func(t *testing.T, c, other *Client) {
		watchers := []*Client{c}
		if c.in().Traits.Lifetime == driver.Leases { // else only the client that keeps it knows
			watchers = append(watchers, other)
		}
		l := must(t)(c.Election("boss", &LockOptions{MinHold: time.Minute}).Campaign(t.Context(), "host-1"))
		seen := make([]chan Leader, len(watchers))
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		for i, by := range watchers {
			wantLeader(t, by, l, "host-1")
			seen[i] = make(chan Leader, 10)
			go func() {
				defer close(seen[i])
				for leader, err := range by.Election("boss", nil).Observe(ctx) {
					if err == nil {
						seen[i] <- leader
					}
				}
			}()
			if leader := <-seen[i]; leader.Value != "host-1" {
				t.Errorf("Observe yields %+v", leader)
			}
		}
		mustUnlock(t, l)
		resigned := time.Now()
		for i, by := range watchers {
			if leader, err := by.Election("boss", nil).Leader(t.Context()); !errors.Is(err, ErrNoLeader) {
				t.Errorf("after it has resigned: %+v, %v", leader, err)
			}
			if leader := <-seen[i]; leader != (Leader{}) || time.Since(resigned) > shell.LookSeldom {
				t.Errorf("Observe yields %+v %v after it has resigned", leader, time.Since(resigned))
			}
			if _, err := by.Election("boss", nil).Leader(t.Context()); !errors.Is(err, ErrNoLeader) {
				t.Errorf("%v later: %v", time.Since(resigned), err)
			}
		}
		next := must(t)(other.Election("boss", nil).Campaign(t.Context(), "host-2"))
		wantAt(t, resigned.Add(time.Minute), "the next leader")
		wantLeader(t, c, next, "host-2")
		mustUnlock(t, next)
		cancel()
		for i := range seen {
			for range seen[i] { // until Observe has ended
				continue
			}
		}
	})
}

func TestLeader_WhoWasLostUnderALockDelay_LeadsNoMore(t *testing.T) {
	for name, lose := range map[string]func(t *testing.T, c *Client, h *hooks, l *Lease){
		"broken": func(t *testing.T, c *Client, _ *hooks, l *Lease) {
			if err := c.Break(t.Context(), KindElection, "boss", l.Token()); err != nil {
				t.Error(err)
			}
		},
		"unconfirmed": func(_ *testing.T, _ *Client, h *hooks, l *Lease) {
			on(h, &h.renew, noRenewals)
			<-l.Lost()
		},
		"crashed": func(_ *testing.T, _ *Client, h *hooks, l *Lease) {
			on(h, &h.renew, noRenewals)
			on(h, &h.release, func(ctx context.Context, _ *driver.Release) error {
				<-ctx.Done()
				return ctx.Err()
			})
			<-l.Lost()
			time.Sleep(second) // until the engine's lease has ended too
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				other := peer(t, h, nil)
				l := must(t)(c.Election("boss", &LockOptions{LockDelay: time.Hour}).Campaign(t.Context(), "host-1"))
				wantLeader(t, other, l, "host-1")
				lose(t, c, h, l)
				synctest.Wait()
				if leader, err := other.Election("boss", nil).Leader(t.Context()); !errors.Is(err, ErrNoLeader) {
					t.Errorf("within the LockDelay: %+v, %v", leader, err)
				}
				ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
				defer cancel()
				if _, err := other.Election("boss", nil).Campaign(ctx, "host-2"); !errors.Is(err, ErrHeld) {
					t.Errorf("within the LockDelay another leads: %v", err)
				}
			})
		})
	}
}
