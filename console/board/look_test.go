package board

import (
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
)

func TestTake_ShowsHoldersWaitersAndWhoWaitsForWhom(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.lock("a b/c")
		other, err := interlock.New(w.driver, nil) // goroutines of one client wait where the engine does not see them
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		go func() {
			if waiter, err := other.Lock(w.Context(), "a b/c"); err == nil {
				_ = waiter.Unlock(w.Context())
			}
		}()
		time.Sleep(5 * time.Second) // virtual
		b := Take(w.Context(), w.client, nil)
		if len(b.Locks) != 1 || b.Locks[0].ID != "mutex/a%20b%2Fc" || b.Counts.Waiting != 1 || len(b.Edges) != 1 ||
			b.Counts.OldestWaiterMs != 5000 || b.Lifetime != "lease" || !b.Knows.Break.OK ||
			b.Counts.ByKind["mutex"] != 1 {
			t.Errorf("%+v", b)
		}
		text, err := json.Marshal(b)
		if err != nil || !strings.Contains(string(text), fmt.Sprintf(`"token":"%d"`, l.Token())) {
			t.Errorf("%v: %s", err, text)
		}
		w.unlock(l)
	})
}

func TestTake_LeavesCandidatesOutOfTheOldestWait(t *testing.T) {
	inWorld(t, func(w *world) {
		term, err := w.client.Election("e", nil).Campaign(w.Context(), "first")
		if err != nil {
			t.Fatal(err)
		}
		other, err := interlock.New(w.driver, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer other.Close()
		go func() {
			if next, err := other.Election("e", nil).Campaign(w.Context(), "second"); err == nil {
				_ = next.Unlock(w.Context())
			}
		}()
		time.Sleep(5 * time.Second) // virtual
		if b := Take(w.Context(), w.client, nil); b.Counts.Waiting != 1 || b.Counts.OldestWaiterMs != 0 {
			t.Errorf("%+v", b.Counts)
		}
		w.unlock(term)
	})
}

func TestTake_OfMoreLocksThanItMay_KeepsTheFirstByNameAndCountsAll(t *testing.T) {
	inWorld(t, func(w *world) {
		for i := range 50 {
			defer w.unlock(w.lock(fmt.Sprintf("%02d", 49-i)))
		}
		b := Take(w.Context(), w.client, &Options{MaxLocks: 7})
		if !b.Truncated || len(b.Locks) != 7 || b.Locks[6].Name != "06" || b.Counts.Held != 50 {
			t.Errorf("%+v", b)
		}
		if b := Take(w.Context(), w.client, &Options{Prefix: "1"}); b.Truncated || len(b.Locks) != 10 {
			t.Errorf("%+v", b)
		}
	})
}

func TestTake_SaysWhyTheEngineHasNotAnswered(t *testing.T) {
	inWorld(t, func(w *world) {
		noRoute := errors.New("no route")
		w.faults.Rules(faulty.Rule{Op: faulty.Locks, Err: noRoute})
		b := Take(w.Context(), w.client, nil)
		if !errors.Is(b.Err, noRoute) || !strings.Contains(b.Error, "no route") || !b.Truncated ||
			!b.Taken.IsZero() || b.Locks == nil {
			t.Errorf("%+v", b)
		}
		w.faults.Pause()
		b = Take(w.Context(), w.client, &Options{Timeout: time.Second})
		if !strings.Contains(b.Error, "no answer within 1s") {
			t.Error(b.Error)
		}
		w.faults.Resume()
	})
}

// blind is an engine that cannot list.
type blind struct{ driver.Driver }

func (b blind) Traits() driver.Traits {
	t := b.Driver.Traits()
	t.Lifetime = driver.Process
	t.Kinds = []driver.Kind{driver.KindMutex}
	for _, a := range []driver.Ability{driver.Holders, driver.Waiters, driver.Breaking} {
		t.Unsupported = append(t.Unsupported, driver.Unsupported{Ability: a, Reason: "it cannot see"})
	}
	return t
}

func TestTake_OfAnEngineThatCannotList_SaysSo(t *testing.T) {
	inWorld(t, func(w *world) {
		c, err := interlock.New(blind{w.driver}, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		b := Take(w.Context(), c, nil)
		k := b.Knows
		if k.List != (Knowledge{Why: "it cannot see"}) || k.Waiters.OK || k.Break.Why != "it cannot see" ||
			k.Until.OK || k.Latch.OK || b.Error != "" || b.Locks == nil || w.faults.Calls(faulty.Locks) > 0 {
			t.Errorf("%+v", b)
		}
	})
}

func TestKnows_SinceAndTokenAreSeen(t *testing.T) {
	for name, row := range map[string]struct {
		holders []Holder
		since   bool
		token   bool
	}{
		"nobody holds anything": {nil, true, true},
		"all is told":           {[]Holder{{Since: time.Now(), Token: 1}}, true, true},
		"no instants":           {[]Holder{{Token: 1}}, false, true},
		"one of two":            {[]Holder{{}, {Since: time.Now()}}, true, false},
	} {
		k := knowledge(driver.Traits{Lifetime: driver.Sessions})
		k.seen([]Lock{mutexHeld("a", row.holders...)})
		if k.Since.OK != row.since || k.Token.OK != row.token || k.Until.OK || k.Until.Why == "" {
			t.Errorf("%s: %+v", name, k)
		}
	}
}
