package interlock

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
)

// retaining is what most tests of retention use.
var retaining = &Options{Retain: time.Minute}

// aBlock is when the clock has caught up with a block of tokens: before, only single ones are given.
const aBlock = retainTokens * time.Microsecond

// pair locks and unlocks.
func pair(t *testing.T, c *Client, name string) *Lease {
	t.Helper()
	l := mustLock(t, t.Context(), c, name)
	mustUnlock(t, l)
	return l
}

// messages is how many requests the engine has had, without renewals.
func (h *hooks) messages() int64 { return h.acquires.Load() + h.requeues.Load() + h.releases.Load() }

// getsInWithin fails unless c gets the lock in that time.
func getsInWithin(t *testing.T, c *Client, name string, d time.Duration) *Lease {
	t.Helper()
	begin := time.Now()
	l := mustLock(t, t.Context(), c, name)
	if took := time.Since(begin); took > d {
		t.Errorf("it took %v, want at most %v", took, d)
	}
	return l
}

func TestRetain_ALockThatIsTakenAgain_SendsNothing(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		last := pair(t, c, "a")
		nonces := map[string]bool{}
		for range 100 {
			l := mustLock(t, t.Context(), c, "a")
			if nonces[nonceOf(t, l)] || l.Token() <= last.Token() {
				t.Errorf("token %d, nonce %q after token %d", l.Token(), nonceOf(t, l), last.Token())
			}
			nonces[nonceOf(t, l)] = true
			mustUnlock(t, l)
			last = l
		}
		if err := last.Err(); !errors.Is(err, ErrReleased) {
			t.Errorf("after Unlock: %v", err)
		}
		if n := h.messages(); n != 1 {
			t.Errorf("%d messages, want that of the first Lock", n)
		}
	})
}

func TestRetain_AnotherClientThatAsks_GetsTheLockAtOnce(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		first := pair(t, c, "a")
		other := peer(t, h, nil)
		l := getsInWithin(t, other, "a", 0)
		if l.Token() <= first.Token() {
			t.Errorf("token %d after %d", l.Token(), first.Token())
		}
		mustUnlock(t, l)
		synctest.Wait()
		if n := h.releases.Load(); n != 1 {
			t.Errorf("the retainer has sent %d releases, want 1", n)
		}
		mustUnlock(t, mustLock(t, t.Context(), c, "a"))
	})
}

func TestRetain_ATryOfAnother_GetsWhatIsMerelyRetained(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		pair(t, c, "a")
		other := peer(t, h, nil)
		l, err := other.TryLock(t.Context(), "a")
		if err != nil {
			t.Fatal(err)
		}
		mustUnlock(t, l)
	})
}

func TestRetain_ATryOfAHeldLock_WaitsForARecallAndNoLonger(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		begin := time.Now()
		_, err := peer(t, h, nil).TryLock(t.Context(), "a")
		if !errors.Is(err, ErrHeld) || !driver.IsDefinite(err) {
			t.Errorf("got %v, want a definite refusal", err)
		}
		if took := time.Since(begin); took != recallWait {
			t.Errorf("it took %v, want %v", took, recallWait)
		}
		mustUnlock(t, l)
		synctest.Wait()
		if l := getsInWithin(t, c, "a", 0); l != nil { // the try has left nothing
			mustUnlock(t, l)
		}
	})
}

func TestWanted_IsClosedWhenAnotherAsks_AndTheLockIsNotRetainedThen(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		early := l.Wanted()
		if isClosed(early) {
			t.Error("wanted, and nobody has asked")
		}
		wait := lockLater(t.Context(), peer(t, h, nil), "a")
		synctest.Wait()
		if !isClosed(early) || !isClosed(l.Wanted()) {
			t.Error("another has asked, and the holder does not know")
		}
		begin := time.Now()
		mustUnlock(t, l)
		mustUnlock(t, (<-wait).lease)
		if took := time.Since(begin); took > 0 {
			t.Errorf("the other got in %v after Unlock", took)
		}
	})
}

func TestWanted_WithoutRetain_IsToldByTheNextRenewal(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		wait := lockLater(t.Context(), peer(t, h, nil), "a")
		begin := time.Now()
		<-l.Wanted()
		if took := time.Since(begin); took > 10*second {
			t.Errorf("it took %v, want at most a third of the lease", took)
		}
		mustUnlock(t, l)
		mustUnlock(t, (<-wait).lease)
	})
}

// deaf has nobody told that another wants the lock, so often.
func deaf(h *hooks, times int) {
	on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
		if tell := r.Wanted; tell != nil {
			r.Wanted = func() {
				if times--; times < 0 {
					tell()
				}
			}
		}
		return h.Driver.Acquire(ctx, r)
	})
}

func TestRetain_WhenAMessageIsLost_TheNextRenewalRecalls(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		deaf(h, 1)
		pair(t, c, "a")
		time.Sleep(second) // into its retention
		mustUnlock(t, getsInWithin(t, peer(t, h, nil), "a", retainLease/3))
	})
}

// TestRetain_ByAClientThatDies: from its first renewal on the retained lock has a short lease, although the hold had a
// long one.
func TestRetain_ByAClientThatDies_KeepsOthersOutForAShortLease(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		deaf(h, 1000)
		pair(t, c, "a")
		time.Sleep(5 * second)
		on(h, &h.renew, noRenewals)
		on(h, &h.release, func(context.Context, *driver.Release) error { return errors.New("dead") })
		mustUnlock(t, getsInWithin(t, peer(t, h, nil), "a", 2500*time.Millisecond))
		on(h, &h.release, h.Driver.Release)
	})
}

func TestRetain_EndsAfterItsTime(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		pair(t, c, "a")
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		if h.releases.Load() != 0 {
			t.Error("given back too early")
		}
		time.Sleep(2)
		synctest.Wait()
		if h.releases.Load() != 1 {
			t.Error("not given back in time")
		}
	})
}

// TestRetain_ATakeOver_HasTheTrustThatIsLeft: and is renewed for its own lease soon after, if it lasts.
func TestRetain_ATakeOver_HasTheTrustThatIsLeft(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		pair(t, c, "a")
		time.Sleep(5 * second)
		l := mustLock(t, t.Context(), c, "a")
		if left := time.Until(l.Deadline()); left <= 0 || left > retainLease {
			t.Errorf("%v of trust, want what a short lease leaves", left)
		}
		before := h.renewals.Load()
		if synctest.Wait(); h.renewals.Load() != before {
			t.Error("it is renewed at once, and might be over before it needs that")
		}
		time.Sleep(2 * claimDelay)
		synctest.Wait()
		if left := time.Until(l.Deadline()); left < 29*second {
			t.Errorf("%v of trust, want the whole lease", left)
		}
		mustUnlock(t, l)
		if n := h.messages(); n != 1 {
			t.Errorf("%d messages beside renewals, want that of the first Lock", n)
		}
	})
}

// TestRetain_ARenewalThatShortens_IsNotOutdoneByAnEarlierAnswer: the answer to a renewal of the hold comes when its
// lease has been shortened, and says nothing of that.
func TestRetain_ARenewalThatShortens_IsNotOutdoneByAnEarlierAnswer(t *testing.T) {
	bubble(t, &Options{Retain: time.Hour}, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		late := make(chan struct{})
		on(h, &h.renew, func(ctx context.Context, batch []driver.Renewal, done func(int, error)) {
			h.Driver.Renew(ctx, batch, func(i int, err error) {
				if !batch[i].Retained {
					<-late
				}
				done(i, err)
			})
		})
		time.Sleep(10*second + 1) // the hold's renewal has been sent
		mustUnlock(t, l)
		time.Sleep(2 * retainGrace) // and then the one that shortens
		close(late)
		synctest.Wait()
		next := mustLock(t, t.Context(), c, "a")
		if left := time.Until(next.Deadline()); left > retainLease {
			t.Errorf("%v of trust, and the engine has given %v", left, retainLease)
		}
		mustUnlock(t, next)
	})
}

// TestRetain_WhenNoRenewalIsAnswered_GoesBack: nobody needs it.
func TestRetain_WhenNoRenewalIsAnswered_GoesBack(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.renew, noRenewals)
		pair(t, c, "a")
		time.Sleep(retainGrace + retainLease/2)
		if synctest.Wait(); h.releases.Load() != 1 {
			t.Errorf("%d releases, want 1", h.releases.Load())
		}
	})
}

// TestRetain_WithLittleTrust_AsksTheEngine: a renewal that travels with that of a long hold is waited for for longer.
func TestRetain_WithLittleTrust_AsksTheEngine(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		long := mustLock(t, t.Context(), c, "long")
		defer mustUnlock(t, long)
		time.Sleep(9500 * time.Millisecond)
		on(h, &h.renew, noRenewals)
		pair(t, c, "a")
		time.Sleep(retainGrace + retainLease*4/5)
		l := mustLock(t, t.Context(), c, "a")
		if left := time.Until(l.Deadline()); left < 29*second {
			t.Errorf("%v of trust, want a hold of its own", left)
		}
		mustUnlock(t, l)
	})
}

// TestRetain_ByOneWhoHasWaited_IsLeft: others may stand behind, who have told whoever held it then.
func TestRetain_ByOneWhoHasWaited_IsLeft(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		first, third := peer(t, h, nil), peer(t, h, nil)
		l := mustLock(t, t.Context(), first, "a")
		second := lockLater(t.Context(), c, "a")
		synctest.Wait()
		last := lockLater(t.Context(), third, "a")
		synctest.Wait()
		time.Sleep(aBlock)
		mustUnlock(t, l)
		begin := time.Now()
		mustUnlock(t, (<-second).lease)
		mustUnlock(t, (<-last).lease)
		if took := time.Since(begin); took > 0 {
			t.Errorf("the last got in after %v", took)
		}
	})
}

// TestRetain_WhileNobodyElseWants_PassesInsideTheProcessWithoutEnd: LocalHandoffTime is for the sake of others.
func TestRetain_WhileNobodyElseWants_PassesInsideTheProcessWithoutEnd(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		l := mustLock(t, t.Context(), c, "a")
		for range 10 {
			next := lockLater(t.Context(), c, "a")
			synctest.Wait()
			time.Sleep(second)
			mustUnlock(t, l)
			l = (<-next).lease
		}
		mustUnlock(t, l)
		if n := h.messages(); n != 1 {
			t.Errorf("%d messages, want that of the first Lock", n)
		}
	})
}

func TestRetain_WithoutTokens_AsksTheEngine(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		on(h, &h.acquire, func(ctx context.Context, r *driver.Request) (driver.Grant, error) {
			r.Tokens = 3
			return h.Driver.Acquire(ctx, r)
		})
		var last uint64
		for range 6 {
			l := pair(t, c, "a")
			if l.Token() <= last {
				t.Errorf("token %d after %d", l.Token(), last)
			}
			last = l.Token()
			time.Sleep(time.Millisecond) // or later blocks would be of one
		}
		if n := h.acquires.Load(); n != 2 {
			t.Errorf("asked %d times for 6 pairs of 3 tokens each, want 2", n)
		}
	})
}

func TestRetain_RecalledAgainAndAgain_IsLeftForAWhile(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		other := peer(t, h, nil)
		recalled, skipped := 0, 0
		for range 40 {
			time.Sleep(2 * aBlock)
			before := h.releases.Load()
			pair(t, c, "a")
			if h.releases.Load() > before {
				skipped++
				continue
			}
			recalled++
			pair(t, other, "a")
			synctest.Wait()
		}
		t.Logf("retained %d times, and %d times not", recalled, skipped)
		if recalled > 7 { // the first two, and then after 2, 4, 8 and 16 more
			t.Errorf("retained and recalled %d times, and %d times not retained", recalled, skipped)
		}
	})
}

func TestRetain_OfMoreThanSoMany_GivesTheOldestBack(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		for i := range mostRetained + 1 {
			pair(t, c, fmt.Sprint(i))
		}
		synctest.Wait()
		if n := h.releases.Load(); n != retainedBatch {
			t.Errorf("%d were given back, want %d", n, retainedBatch)
		}
		before := h.messages()
		pair(t, c, fmt.Sprint(mostRetained))
		pair(t, c, fmt.Sprint(retainedBatch))
		if h.messages() != before {
			t.Error("a later one was given back before an older one")
		}
	})
}

func TestRetain_IsNobodysHold(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		first := mustLock(t, t.Context(), c, "a")
		mustUnlock(t, first)
		if isClosed(first.Lost()) {
			t.Error("it was released, not lost")
		}
		time.Sleep(second)
		info, err := h.Look(t.Context(), driver.Key{Kind: KindMutex, Name: "a"})
		if err != nil || len(info.Holders) != 1 {
			t.Fatalf("%+v, %v", info, err)
		}
		if held := info.Holders[0]; !held.Retained || held.Owner != "" || held.Client != c.opts.ClientName {
			t.Errorf("shown as %+v", held)
		}
		if err := c.Break(t.Context(), KindMutex, "a", first.Token()); err != nil {
			t.Fatal(err)
		}
		if isClosed(first.Lost()) {
			t.Error("nobody held what was broken")
		}
		mustUnlock(t, mustLock(t, t.Context(), c, "a"))
	})
}

func TestRetain_WhereItCannotBe_IsRefusedOrLeft(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		for _, o := range []*LockOptions{
			{Retain: -1}, {Retain: second, NoRenew: true}, {Retain: second, MinHold: second}, {Retain: second, LockDelay: second},
		} {
			if _, err := c.Mutex("a", o).Lock(t.Context()); err == nil {
				t.Errorf("%+v is not refused", o)
			}
		}
		if _, err := c.RWMutex("a", &LockOptions{Retain: second}).RLock(t.Context()); !errors.Is(err, ErrUnsupported) {
			t.Errorf("a read: %v", err)
		}
		if _, err := c.Election("a", &LockOptions{Retain: second}).Campaign(t.Context(), ""); !errors.Is(err, ErrUnsupported) {
			t.Errorf("an election: %v", err)
		}
		if _, err := New(&lacking{h}, retaining); !errors.Is(err, ErrUnsupported) {
			t.Errorf("an engine that cannot: %v", err)
		}
		// What the client's option does not mean is given back.
		for i, lock := range []func() (*Lease, error){
			func() (*Lease, error) { return c.Lock(WithOwner(t.Context(), "me"), "named") },
			func() (*Lease, error) { return c.Mutex("fixed", &LockOptions{NoRenew: true}).Lock(t.Context()) },
			func() (*Lease, error) { return c.RWMutex("rw", nil).Lock(t.Context()) },
			func() (*Lease, error) { return c.Election("e", nil).Campaign(t.Context(), "") },
			func() (*Lease, error) { return c.Semaphore("s", 1, nil).Acquire(t.Context(), 1) },
		} {
			before := h.releases.Load()
			l, err := lock()
			if err != nil {
				t.Fatal(err)
			}
			mustUnlock(t, l)
			if h.releases.Load() != before+1 {
				t.Errorf("number %d is retained", i)
			}
		}
	})
}

// lacking is an engine that cannot tell a holder that another waits.
type lacking struct{ *hooks }

func (d *lacking) Traits() driver.Traits {
	t := d.hooks.Traits()
	t.Unsupported = append(t.Unsupported, driver.Unsupported{Ability: driver.Recalls, Reason: "it is to lack it"})
	return t
}

// TestRetain_WithOtherCallsOfTheSameClient: those go to the engine by themselves, and find a hold of their own client.
func TestRetain_WithOtherCallsOfTheSameClient_GivesWay(t *testing.T) {
	for name, lock := range map[string]func(ctx context.Context, c *Client) (func(context.Context) error, error){
		"a named owner": func(ctx context.Context, c *Client) (func(context.Context) error, error) {
			l, err := c.Lock(WithOwner(ctx, "me"), "a")
			return l.Unlock, err
		},
		"a named owner's try": func(ctx context.Context, c *Client) (func(context.Context) error, error) {
			l, err := c.TryLock(WithOwner(ctx, "me"), "a")
			return l.Unlock, err
		},
		"another lease": func(ctx context.Context, c *Client) (func(context.Context) error, error) {
			l, err := c.Mutex("a", &LockOptions{Lease: 5 * second}).TryLock(ctx)
			return l.Unlock, err
		},
		"a multi": func(ctx context.Context, c *Client) (func(context.Context) error, error) {
			l, err := c.Multi([]string{"a", "b"}, nil).Lock(ctx)
			return l.Unlock, err
		},
		"a multi's try": func(ctx context.Context, c *Client) (func(context.Context) error, error) {
			l, err := c.Multi([]string{"a", "b"}, nil).TryLock(ctx)
			return l.Unlock, err
		},
	} {
		t.Run(name, func(t *testing.T) {
			bubble(t, retaining, func(t *testing.T, c *Client, _ *hooks) {
				pair(t, c, "a")
				begin := time.Now()
				unlock, err := lock(t.Context(), c)
				if err != nil {
					t.Fatal(err)
				}
				if took := time.Since(begin); took > 0 {
					t.Errorf("it took %v", took)
				}
				if err := unlock(t.Context()); err != nil {
					t.Error(err)
				}
				pair(t, c, "a")
			})
		})
	}
}

func TestRetain_ClientThatCloses_GivesBack(t *testing.T) {
	bubble(t, nil, func(t *testing.T, c *Client, h *hooks) {
		other := mustNew(t, h, retaining)
		pair(t, other, "a")
		if err := other.Close(); err != nil {
			t.Fatal(err)
		}
		mustUnlock(t, getsInWithin(t, c, "a", 0))
	})
}
