package board

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/drivertest/faulty"
)

func TestPoller_LooksOnceInAnIntervalHoweverManyRead_AndNotWhileNobodyDoes(t *testing.T) {
	inWorld(t, func(w *world) {
		time.Sleep(time.Hour)
		if n := w.faults.Calls(faulty.Locks); n != 0 {
			t.Fatalf("%d looks, and nobody reads", n)
		}
		var readers []*Reader
		for range 50 {
			readers = append(readers, w.poller.Reader(0))
		}
		time.Sleep(10*time.Second + time.Millisecond)
		if n := w.faults.Calls(faulty.Locks); n != 11 { // at once, and ten more
			t.Errorf("%d looks in ten seconds", n)
		}
		for _, r := range readers {
			r.Close()
		}
		time.Sleep(time.Second)
		before := w.faults.Calls(faulty.Locks)
		time.Sleep(time.Hour)
		if n := w.faults.Calls(faulty.Locks); n != before {
			t.Errorf("%d looks after the last reader had gone", n-before)
		}
	})
}

func TestPoller_TellsWhatHasChangedAndNothingElse(t *testing.T) {
	inWorld(t, func(w *world) {
		first, stays := w.lock("first"), w.lock("stays")
		r := w.poller.Reader(0)
		defer r.Close()
		u := w.next(r)
		if u.Board == nil || len(u.Board.Locks) != 2 || len(u.Board.Events) != 0 || u.Board.Counts.Held != 2 ||
			u.Board.URL != "mem://test" || u.Board.Engine != "memory" {
			t.Fatalf("%+v", u.Board)
		}
		if u := w.next(r); u.Change == nil || len(u.Change.Changed)+len(u.Change.Gone)+len(u.Change.Events) > 0 ||
			u.Change.Edges != nil || u.Change.Knows != nil {
			t.Fatalf("nothing has happened: %+v", u.Change)
		}
		w.unlock(first)
		second := w.lock("second")
		c := w.next(r).Change
		if len(c.Changed) != 1 || c.Changed[0].ID != "mutex/second" || len(c.Gone) != 1 || c.Gone[0] != "mutex/first" {
			t.Errorf("%+v", c)
		}
		owner := stays.Owner()
		if got, want := words(c.Events), "released first "+first.Owner()+"; held second "+second.Owner(); got != want {
			t.Errorf("%s\nwant %s (not %s)", got, want, owner)
		}
		if e := c.Events[0]; e.Time.Sub(e.After) != time.Second {
			t.Errorf("between %v and %v", e.After, e.Time)
		}
		w.unlock(second)
		w.unlock(stays)
	})
}

func TestPoller_ShowsRenewalsAndNoJitter(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.lock("a")
		defer w.unlock(l)
		r := w.poller.Reader(0)
		defer r.Close()
		until := w.next(r).Board.Locks[0].Holders[0].Until
		changes := 0
		for range 60 {
			for _, l := range w.next(r).Change.Changed {
				changes++
				if !l.Holders[0].Until.After(until) {
					t.Errorf("until %v, and then %v", until, l.Holders[0].Until)
				}
				until = l.Holders[0].Until
			}
		}
		if changes < 4 || changes > 8 { // a lease of 30 s is renewed every 10 s or so
			t.Errorf("%d changes in a minute", changes)
		}
	})
}

func TestPoller_KeepsTheLastGoodLook_WhileTheEngineIsAway(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.lock("a")
		r := w.poller.Reader(0)
		defer r.Close()
		good := w.next(r).Board
		w.faults.Rules(faulty.Rule{Op: faulty.Locks, Err: errors.New("the engine is away")})
		c := w.next(r).Change
		if !c.Stale || c.Err == nil || c.Error != c.Err.Error() || !c.Taken.Equal(good.Taken) ||
			c.Tried.Sub(c.Taken) != time.Second ||
			len(c.Gone) > 0 {
			t.Errorf("%+v", c)
		}
		other := w.poller.Reader(0)
		b := w.next(other).Board
		other.Close()
		if !b.Stale || len(b.Locks) != 1 || b.Error != c.Error || !errors.Is(b.Err, c.Err) {
			t.Errorf("a new reader gets %+v", b)
		}
		w.unlock(l)
		w.faults.Rules()
		time.Sleep(time.Minute)
		c = w.next(r).Change
		if c.Stale || c.Error != "" || c.Err != nil || words(c.Events) != "released a "+l.Owner() ||
			!c.Events[0].After.Equal(good.Taken) {
			t.Errorf("%+v", c)
		}
	})
}

func TestPoller_GivesUpALookAfterItsTimeout(t *testing.T) {
	inWorld(t, func(w *world) {
		w.faults.Pause()
		defer w.faults.Resume()
		began := time.Now()
		b, err := w.poller.Now(w.Context())
		if err != nil || b.Error == "" || time.Since(began) != 3*time.Second || !b.Taken.IsZero() || b.Tried.IsZero() {
			t.Errorf("after %v: %+v, %v", time.Since(began), b, err)
		}
	})
}

func TestPoller_SharesOneLook(t *testing.T) {
	inWorld(t, func(w *world) {
		w.faults.Rules(faulty.Rule{Op: faulty.Locks, Before: time.Second / 2})
		boards := make(chan *Board)
		for range 20 {
			go func() {
				b, _ := w.poller.Now(w.Context())
				boards <- b
			}()
		}
		first := <-boards
		for range 19 {
			if b := <-boards; b != first {
				t.Error("another board")
			}
		}
		if n := w.faults.Calls(faulty.Locks); n != 1 {
			t.Errorf("%d looks", n)
		}
		if b, _ := w.poller.Now(w.Context()); b != first {
			t.Error("looked again at once")
		}
		time.Sleep(1001 * time.Millisecond) // longer than the interval, but the look took half a second
		if b, _ := w.poller.Now(w.Context()); b != first {
			t.Error("looked again before a pause is over")
		}
		time.Sleep(time.Second)
		if b, _ := w.poller.Now(w.Context()); b == first {
			t.Error("a board that is older than a pause")
		}
	})
}

func TestPoller_RestsLongerThanALookTakes(t *testing.T) {
	inWorld(t, func(w *world) {
		w.faults.Rules(faulty.Rule{Op: faulty.Locks, Before: 2 * time.Second})
		r := w.poller.Reader(0)
		defer r.Close()
		time.Sleep(20*time.Second + time.Millisecond)
		if n := w.faults.Calls(faulty.Locks); n != 3 {
			t.Errorf("%d looks in 20 s, each of 2 s", n)
		}
		w.faults.Pause()
		defer w.faults.Resume()
		time.Sleep(10 * time.Second)
		before := w.faults.Calls(faulty.Locks)
		time.Sleep(time.Minute)
		if n := w.faults.Calls(faulty.Locks) - before; n != 10 {
			t.Errorf("%d looks in a minute, each fails after 3 s", n)
		}
	})
}

func TestReader_ThatIsSlow_GetsOneUpdateForAllThatItMissed(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.poller.Reader(0)
		defer r.Close()
		has := w.next(r).Board
		time.Sleep(time.Second / 10) // nothing happens at the instant of a look
		for range 5 {
			w.unlock(w.lock("comes and goes"))
			l := w.lock("a")
			time.Sleep(2 * time.Second)
			w.unlock(l)
		}
		last := w.lock("b")
		defer w.unlock(last)
		time.Sleep(time.Second)
		synctest.Wait()
		has = w.next(r).Change.Apply(has)
		other := w.poller.Reader(0)
		defer other.Close()
		if now := w.next(other).Board; len(has.Locks) != 1 || has.Locks[0].ID != now.Locks[0].ID ||
			words(has.Events) != words(now.Events) || len(now.Events) != 11 {
			t.Errorf("%+v\nwant %+v", has, now)
		}
		if _, more := r.Next(); more {
			t.Error("there is more")
		}
	})
}

func TestReader_OfALaterRevisionOrAnUnknownOne_GetsTheWholeBoard(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.poller.Reader(0)
		revision := w.next(r).Revision
		w.next(r)
		r.Close()
		resumed := w.poller.Reader(revision)
		if u := w.next(resumed); u.Change == nil {
			t.Errorf("%+v", u)
		}
		resumed.Close()
		strange := w.poller.Reader(1 << 40)
		defer strange.Close()
		if u := w.next(strange); u.Board == nil {
			t.Errorf("%+v", u)
		}
	})
}

func TestReader_AfterATimeInWhichNobodyRead_IsToldSo(t *testing.T) {
	inWorld(t, func(w *world) {
		r := w.poller.Reader(0)
		w.next(r)
		r.Close()
		time.Sleep(time.Hour)
		w.faults.Rules(faulty.Rule{Op: faulty.Locks, Before: time.Second})
		r = w.poller.Reader(0)
		defer r.Close()
		if u := w.next(r); !u.Board.Stale {
			t.Errorf("%+v", u.Board)
		}
		if u := w.next(r); u.Change.Stale {
			t.Errorf("%+v", u.Change)
		}
	})
}

func TestPoller_TellsWhatItsProgramBreaks_Once(t *testing.T) {
	for name, meanwhile := range map[string]time.Duration{"at once": 0, "after a look has shown the end": time.Minute} {
		t.Run(name, func(t *testing.T) {
			inWorld(t, func(w *world) {
				l := w.lock("a")
				r := w.poller.Reader(0)
				defer r.Close()
				e := holdOnBoard(w.next(r).Board)
				err := w.poller.Break(e, func() error {
					err := w.client.Break(w.Context(), "mutex", "a", e.Token)
					time.Sleep(meanwhile)
					return err
				})
				if err != nil {
					t.Fatal(err)
				}
				began := time.Now()
				// The event and the end may come together: the look that it hastens runs beside the reader.
				var told []Event
				for gone := 0; gone == 0 || len(told) == 0; {
					c := w.next(r).Change
					told, gone = append(told, c.Events...), gone+len(c.Gone)
				}
				if got := words(told); got != "broken a "+e.Owner+" (by local)" || time.Since(began) != 0 {
					t.Errorf("after %v: %s", time.Since(began), got)
				}
				time.Sleep(time.Minute)
				if b, err := w.poller.Now(w.Context()); err != nil || len(b.Events) != 1 {
					t.Errorf("in the end: %s, %v", words(b.Events), err)
				}
				_ = l.Unlock(w.Context())
			})
		})
	}
}

func TestPoller_AHoldThatEndsBeforeItIsBroken_IsReleased(t *testing.T) {
	inWorld(t, func(w *world) {
		l := w.lock("a")
		r := w.poller.Reader(0)
		defer r.Close()
		e := holdOnBoard(w.next(r).Board)
		err := w.poller.Break(e, func() error {
			if err := l.Unlock(w.Context()); err != nil {
				t.Error(err)
			}
			time.Sleep(time.Minute) // looks show the end
			return w.client.Break(w.Context(), "mutex", "a", e.Token)
		})
		if err == nil {
			t.Error("what had ended was broken")
		}
		b, err := w.poller.Now(w.Context())
		if err != nil {
			t.Fatal(err)
		}
		if got := words(b.Events); got != "released a "+e.Owner {
			t.Error(got)
		}
	})
}

// holdOnBoard is the event that the first hold of b is broken.
func holdOnBoard(b *Board) Event {
	h := b.Locks[0].Holders[0]
	return Event{Kind: "mutex", Name: "a", Owner: h.Owner, Token: h.Token, Why: "by local"}
}

func TestPoller_Close_EndsReadersAndLooks(t *testing.T) {
	inWorld(t, func(w *world) {
		w.faults.Pause()
		r := w.poller.Reader(0)
		go w.poller.Close()
		if _, open := <-r.Changed(); open {
			t.Error("told of a board")
		}
		w.poller.Close() // waits for the look
		if _, ok := r.Next(); ok {
			t.Error("an update after Close")
		}
		r.Close()
		if _, err := w.poller.Now(w.Context()); !errors.Is(err, ErrClosed) {
			t.Error(err)
		}
		if _, open := <-w.poller.Reader(0).Changed(); open {
			t.Error("a reader of a closed poller waits")
		}
		w.faults.Resume()
	})
}
