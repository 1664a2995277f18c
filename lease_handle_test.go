package interlock

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// handleOf returns the handle of l, which must have one.
func handleOf(t *testing.T, l *Lease) string {
	t.Helper()
	handle, err := l.Handle()
	if err != nil {
		t.Fatalf("Handle: %v", err)
	}
	return handle
}

func TestAdopt_GoesOnWithTheHold_AndEndsTheGiversLease(t *testing.T) {
	var released, lost int
	watch := Observer{Released: func(Event) { released++ }, Lost: func(Event) { lost++ }}
	bubble(t, &Options{Observer: &watch}, func(t *testing.T, c *Client, h *hooks) {
		ctx, other := t.Context(), peer(t, h, nil)
		given := mustLock(t, ctx, c, "a")
		work := given.Context(ctx)
		handle := handleOf(t, given)
		time.Sleep(3 * defaultLease) // it is renewed on the way
		if given.Err() != nil {
			t.Fatalf("a lease with a handle says %v", given.Err())
		}
		l := must(t)(other.Adopt(ctx, handle))
		synctest.Wait()
		if !errors.Is(given.Err(), ErrAdopted) || !errors.Is(context.Cause(work), ErrAdopted) ||
			!isClosed(given.Lost()) {
			t.Errorf("the giver's lease says %v, its work %v", given.Err(), context.Cause(work))
		}
		if _, ok := given.Stamp(); ok {
			t.Error("the giver still has a stamp")
		}
		if l.Token() <= given.Token() {
			t.Errorf("the token goes from %d to %d, and must grow", given.Token(), l.Token())
		}
		releases, renewals := h.releases.Load(), h.renewals.Load()
		wantErr(t, "the giver's Unlock", given.Unlock(ctx), ErrAdopted)
		wantErr(t, "which matches", given.Unlock(ctx), ErrReleased)
		time.Sleep(3 * defaultLease)
		if h.releases.Load() != releases || h.renewals.Load() != renewals {
			t.Error("the giver has renewed or released")
		}
		_, err := c.TryLock(ctx, "a")
		wantErr(t, "a try", err, ErrHeld)
		_, err = c.Adopt(ctx, handle)
		var told *LostError
		if !errors.As(err, &told) ||
			told.Reason != LostExpired && told.Reason != LostAdopted && told.Reason != LostTaken {
			t.Errorf("a second adoption says %v", err)
		}
		mustUnlock(t, l)
		mustUnlock(t, mustLock(t, ctx, c, "a"))
	})
	if released != 2 || lost != 0 {
		t.Errorf("the Observer was told of %d releases and %d losses, want the adoption as a release", released, lost)
	}
}

func TestAdopt_ASecondTime_SaysThatAnotherHasIt(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx := t.Context()
		handle := handleOf(t, mustLock(t, ctx, c, "a"))
		l := must(t)(peer(t, h, nil).Adopt(ctx, handle))
		_, err := peer(t, h, nil).Adopt(ctx, handle)
		var told *LostError
		if !errors.As(err, &told) || told.Reason != LostAdopted {
			t.Errorf("a second adoption says %v", err)
		}
		again := must(t)(c.Adopt(ctx, handleOf(t, l))) // back to the first client
		synctest.Wait()
		wantErr(t, "the second holder", l.Err(), ErrAdopted)
		mustUnlock(t, again)
	})
}

func TestAdopt_AfterTheGiverHasGone_WithinItsLease(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, other := t.Context(), peer(t, h, nil)
		given := mustLock(t, ctx, c, "a")
		handle := handleOf(t, given)
		if err := given.Abandon(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(defaultLease / 2)
		l := must(t)(other.Adopt(ctx, handle))
		time.Sleep(3 * defaultLease) // in which the giver clears up what it has abandoned
		if l.Err() != nil {
			t.Errorf("what was adopted says %v", l.Err())
		}
		mustUnlock(t, l)

		given = mustLock(t, ctx, c, "a")
		handle = handleOf(t, given)
		if err := given.Abandon(); err != nil {
			t.Fatal(err)
		}
		time.Sleep(2 * defaultLease)
		_, err := other.Adopt(ctx, handle)
		wantErr(t, "when the lease has run out", err, ErrLost)
	})
}

// A giver that stood still, or got no message, learns of the adoption from the answer to its next renewal.
func TestAdopt_AGiverThatHeardNothing_LearnsOfItByItsRenewal(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			deaf := *r
			deaf.Lost = nil
			return h.Driver.Acquire(ctx, &deaf)
		})
		ctx, other := t.Context(), peer(t, h, nil)
		given, second := mustLock(t, ctx, c, "a"), mustLock(t, ctx, c, "b")
		l, m := must(t)(other.Adopt(ctx, handleOf(t, given))), must(t)(other.Adopt(ctx, handleOf(t, second)))
		wantErr(t, "an Unlock that was overtaken", second.Unlock(ctx), ErrAdopted)
		time.Sleep(defaultLease / 2)
		wantErr(t, "after the renewal", given.Err(), ErrAdopted)
		_, err := c.TryLock(ctx, "b")
		wantErr(t, "a try after the Unlock", err, ErrHeld)
		mustUnlock(t, l)
		mustUnlock(t, m)
	})
}

func TestHandle_SendsThoseWhoWaitHereToTheEngine(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx, other := t.Context(), peer(t, h, nil)
		given := mustLock(t, ctx, c, "a")
		wait := lockLater(ctx, c, "a")
		synctest.Wait()
		l := must(t)(other.Adopt(ctx, handleOf(t, given)))
		stillWaits(t, wait, "with the hold adopted")
		mustUnlock(t, l)
		got := <-wait
		if got.err != nil {
			t.Fatal(got.err)
		}
		handle := handleOf(t, got.lease)
		mustUnlock(t, got.lease)
		_, err := other.Adopt(ctx, handle)
		wantErr(t, "the handle of a hold that was released", err, ErrLost)
	})
}

func TestAdopt_EveryKind(t *testing.T) {
	for name, take := range map[string]func(ctx context.Context, c *Client) (*Lease, error){
		"writer": func(ctx context.Context, c *Client) (*Lease, error) { return c.RWMutex("a", nil).Lock(ctx) },
		"reader": func(ctx context.Context, c *Client) (*Lease, error) { return c.RWMutex("a", nil).RLock(ctx) },
		"permits": func(ctx context.Context, c *Client) (*Lease, error) {
			return c.Semaphore("a", 3, nil).Acquire(ctx, 2)
		},
		"election": func(ctx context.Context, c *Client) (*Lease, error) {
			return c.Election("a", nil).Campaign(ctx, "x")
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
				ctx, other := t.Context(), peer(t, h, nil)
				given := must(t)(take(ctx, c))
				before, _ := c.Look(ctx, given.Kind(), "a")
				l := must(t)(other.Adopt(ctx, handleOf(t, given)))
				after, err := c.Look(ctx, given.Kind(), "a")
				if err != nil || len(after.Holders) != 1 {
					t.Fatalf("%+v, %v", after, err)
				}
				was, is := before.Holders[0], after.Holders[0]
				if is.Weight != was.Weight || is.Shared != was.Shared || is.Label != was.Label ||
					is.Owner != l.Owner() {
					t.Errorf("the holder goes from %+v to %+v", was, is)
				}
				synctest.Wait()
				wantErr(t, "the giver", given.Err(), ErrAdopted)
				time.Sleep(3 * defaultLease)
				mustUnlock(t, l)
			})
		})
	}
}

func TestHandle_OfWhatCannotTravel_SaysWhy(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx := t.Context()
		refused := func(what string, l *Lease, want error, text string) {
			t.Helper()
			_, err := l.Handle()
			wantErr(t, what, err, want)
			wantText(t, what, err, text)
		}
		l := mustLock(t, ctx, c, "a")
		inner := mustLock(t, l.Context(ctx), c, "a")
		refused("with a second hold", l, ErrNested, "further holds")
		refused("a second hold", inner, ErrNested, "further holds")
		mustUnlock(t, inner)
		mustUnlock(t, l)
		refused("after the release", l, ErrReleased, "released")
		refused("of a named owner", mustLock(t, WithOwner(ctx, "x"), c, "b"), ErrUnsupported, "lock as the same owner")
		refused("an upgradeable read", must(t)(c.RWMutex("c", nil).UpgradeableRLock(ctx)), ErrUnsupported,
			"upgradeable")
		refused("the zero value", new(Lease), errNoLease, "not made by Lock")
	})
}

func TestAdopt_RefusesWhatItDoesNotKnow(t *testing.T) {
	bubble(t, &Options{Store: "redis|a:6379||0||"}, func(t *testing.T, c *Client, h *hooks) {
		ctx := t.Context()
		l := mustLock(t, ctx, c, "a")
		made := handleOf(t, l)
		plain, err := driver.ParseHandle(made)
		if err != nil {
			t.Fatal(err)
		}
		foreign := plain
		foreign.Engine = "redis"
		_, err = c.Adopt(ctx, foreign.Encode())
		wantErr(t, "of another engine", err, ErrUnsupported)
		wantText(t, "of another engine", err, "the handle is of a hold on redis, and this is memory")
		for _, text := range []string{"", "x", made[:len(made)/2], "!" + made} {
			_, err = c.Adopt(ctx, text)
			wantText(t, text, err, "this is not a handle")
		}
		named := plain
		named.Named = true
		_, err = c.Adopt(ctx, named.Encode())
		wantErr(t, "of a named owner", err, ErrUnsupported)

		d := newHooks(h.Driver)
		elsewhere := mustNew(t, d, &Options{Store: "redis|b:6379||0||"})
		defer func() { _ = elsewhere.Close() }()
		foreign = plain
		foreign.Name = "z" // as it is not there
		_, err = elsewhere.Adopt(ctx, foreign.Encode())
		wantErr(t, "of another store", err, ErrLost)
		wantText(t, "of another store", err, "it is on another store")
		if strings.Contains(made, "6379") || l.Err() != nil {
			t.Error("the handle shows the store, or the hold has ended")
		}
	})
}

// An adoption whose answer never came may have been carried out. What it took is given back.
func TestAdopt_WithoutAnAnswer_IsUndone(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		given := mustLock(t, t.Context(), c, "a")
		other := mustNew(t, silentAdopter{newHooks(h.Driver)}, nil)
		defer func() { _ = other.Close() }()
		ctx, cancel := context.WithTimeout(t.Context(), time.Second)
		defer cancel()
		_, err := other.Adopt(ctx, handleOf(t, given))
		wantErr(t, "an adoption without an answer", err, ErrUnavailable)
		synctest.Wait()
		wantErr(t, "the giver", given.Err(), ErrAdopted)
		mustUnlock(t, mustLock(t, t.Context(), c, "a"))
	})
}

// silentAdopter carries an adoption out and loses the answer.
type silentAdopter struct{ *hooks }

func (m silentAdopter) Adopt(ctx context.Context, from string, r *driver.Request) (driver.Grant, error) {
	_, _ = m.hooks.Adopt(ctx, from, r)
	<-ctx.Done()
	return driver.Grant{}, ctx.Err()
}

// That a repetition is refused says nothing of the attempt before it, which may still arrive.
func TestAdopt_RefusedAfterAnAnswerWasLost_IsUndone(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		ctx := t.Context()
		given := mustLock(t, ctx, c, "a")
		late := &lateAdopter{hooks: newHooks(h.Driver)}
		other := mustNew(t, late, nil)
		defer func() { _ = other.Close() }()
		_, err := other.Adopt(ctx, handleOf(t, given))
		wantErr(t, "an adoption whose repetition is refused", err, ErrUnavailable)
		wantErr(t, "as the engine said", err, ErrNested)
		synctest.Wait()
		wantErr(t, "the giver", given.Err(), ErrAdopted)
		mustUnlock(t, must(t)(c.TryLock(ctx, "a")))
	})
}

// lateAdopter loses the first request for an adoption, refuses the second, and carries the first out then.
type lateAdopter struct {
	*hooks
	asked int
}

func (m *lateAdopter) Adopt(ctx context.Context, from string, r *driver.Request) (driver.Grant, error) {
	if m.asked++; m.asked == 1 {
		return driver.Grant{}, &driver.UnavailableError{Op: "adopt", Name: r.Name, Err: errors.New("a broken line")}
	}
	_, _ = m.hooks.Adopt(ctx, from, r)
	return driver.Grant{}, driver.ErrNested
}
