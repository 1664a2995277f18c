package interlock

import (
	"errors"
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/core"
)

// retaining are the client options of most tests of retention.
var retaining = &Options{Retain: time.Minute}

// aBlock is after how long the clock has caught up with a block of tokens. Before, only single tokens are granted.
const aBlock = core.RetainTokens * time.Microsecond

// pair locks and unlocks once.
func pair(t *testing.T, c *Client, name string) *Lease {
	t.Helper()
	l := mustLock(t, t.Context(), c, name)
	mustUnlock(t, l)
	return l
}

// messages returns how many requests the engine has had, renewals not counted.
func (h *hooks) messages() int64 { return h.acquires.Load() + h.requeues.Load() + h.releases.Load() }

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

func TestRetain_EndsAfterItsTime(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		pair(t, c, "a")
		time.Sleep(time.Minute - 1)
		synctest.Wait()
		if h.releases.Load() != 0 {
			t.Error("given back too early")
		}
		time.Sleep(2 * time.Nanosecond)
		synctest.Wait()
		if h.releases.Load() != 1 {
			t.Error("not given back in time")
		}
	})
}

// LocalHandoffTime bounds the passes inside a process for the sake of other clients. While none wants the lock, it does
// not count.
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

func TestRetain_OfMoreThanSoMany_GivesTheOldestBack(t *testing.T) {
	bubble(t, retaining, func(t *testing.T, c *Client, h *hooks) {
		for i := range core.MostRetained + 1 {
			pair(t, c, fmt.Sprint(i))
		}
		synctest.Wait()
		if n := h.releases.Load(); n != core.RetainedBatch {
			t.Errorf("%d were given back, want %d", n, core.RetainedBatch)
		}
		before := h.messages()
		pair(t, c, fmt.Sprint(core.MostRetained))
		pair(t, c, fmt.Sprint(core.RetainedBatch))
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
		if held := info.Holders[0]; !held.Retained || held.Owner != "" || held.Client != c.in().Config.ClientName {
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
			{Retain: -1},
			{Retain: second, NoRenew: true},
			{Retain: second, MinHold: second},
			{Retain: second, LockDelay: second},
		} {
			if _, err := c.Mutex("a", o).Lock(t.Context()); err == nil {
				t.Errorf("%+v is not refused", o)
			}
		}
		if _, err := c.RWMutex("a", &LockOptions{Retain: second}).RLock(t.Context()); !errors.Is(err, ErrUnsupported) {
			t.Errorf("a read: %v", err)
		}
		_, err := c.Election("a", &LockOptions{Retain: second}).Campaign(t.Context(), "")
		if !errors.Is(err, ErrUnsupported) {
			t.Errorf("an election: %v", err)
		}
		if _, err := New(&lacking{h}, retaining); !errors.Is(err, ErrUnsupported) {
			t.Errorf("an engine that cannot: %v", err)
		}
		// What is retained is taken over by a hand-off, and there would be none.
		if _, err := New(h, &Options{Retain: time.Minute, LocalHandoffs: -1}); err == nil {
			t.Error("a client without hand-offs is not refused")
		}
		apart := peer(t, h, &Options{LocalHandoffs: -1})
		if _, err := apart.Mutex("a", &LockOptions{Retain: second}).Lock(t.Context()); err == nil {
			t.Error("a Mutex of a client without hand-offs is not refused")
		}
		// Client-wide Retain is for mutexes of anonymous owners with renewal. All other holds are given back.
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

// lacking is an engine that cannot tell a holder that another client waits.
type lacking struct{ *hooks }

func (d *lacking) Traits() driver.Traits {
	t := d.hooks.Traits()
	t.Unsupported = append(t.Unsupported, driver.Unsupported{Ability: driver.Recalls, Reason: "it is to lack it"})
	return t
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
