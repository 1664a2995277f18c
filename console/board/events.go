package board

import (
	"time"

	"github.com/interlock-go/interlock/driver"
)

// EventKind is a word for what has happened to a lock.
type EventKind string

// The kinds of events. The first five are seen from outside, between two looks.
const (
	// Held: somebody holds the lock who did not before.
	Held EventKind = "held"
	// Released: a holder has gone before the end of its lease. Whether it has released the lock, or was broken or cut
	// off, cannot be told from outside.
	Released EventKind = "released"
	// Ended: a holder has gone, and its lease was over: it was not renewed, or was released at the last moment.
	Ended EventKind = "ended"
	// Waiting: somebody waits for the lock who did not before.
	Waiting EventKind = "waiting"
	// Left: somebody has stopped waiting and does not hold the lock.
	Left EventKind = "left"
	// Broken: a hold was ended through this program, see [Poller.Broke].
	Broken EventKind = "broken"
	// Lost: a client of this program has lost a hold, see [Poller.Tell].
	Lost EventKind = "lost"
)

// Event is something that has happened to a lock.
type Event struct {
	Seq  uint64    `json:"seq"`  // grows by one with each event of a Poller
	Time time.Time `json:"time"` // of the look that has shown it
	// After is the time of the look before, so that it happened between the two. It is zero if the instant is known.
	After  time.Time   `json:"after,omitzero"`
	Event  EventKind   `json:"event"`                  // what has happened
	Kind   driver.Kind `json:"kind"`                   // of the lock
	Name   string      `json:"name"`                   // of the lock
	Client string      `json:"client,omitempty"`       // of the holder or waiter
	Owner  string      `json:"owner,omitempty"`        // the holder or waiter
	Label  string      `json:"label,omitempty"`        // of the holder or waiter
	Token  uint64      `json:"token,string,omitempty"` // of the hold; a string in JSON, see Holder
	Why    string      `json:"why,omitempty"`          // what else is known of the reason

	revision uint64 // of the board that was the first to show it
}

// whyCooldown and whyRetained say what became of a lock whose hold is over.
const (
	whyCooldown = "the lock stays closed for a while"
	whyRetained = "its client retains the lock"
)

// Changes returns what has happened between two looks at the same locks, as events without numbers and times: of each
// lock first who has gone and then who has come, so that a hand-over reads in its order. Both lists are in the order of
// a Board. now decides whether a lease was over; it is compared with instants of the engine's clock.
func Changes(before, after []Lock, now time.Time) []Event {
	var events []Event
	walk(before, after, func(i, j int) {
		switch {
		case i >= 0 && j >= 0:
			if !same(&before[i], &after[j]) {
				events = changesOf(events, &before[i], &after[j], now)
			}
		case i >= 0:
			events = changesOf(events, &before[i], &Lock{}, now)
		default:
			events = changesOf(events, &Lock{Kind: after[j].Kind, Name: after[j].Name}, &after[j], now)
		}
	})
	return events
}

// walk calls pair for each lock of both lists, which are in order: with its index in each, or -1 where it is not.
func walk(before, after []Lock, pair func(i, j int)) {
	i, j := 0, 0
	for i < len(before) || j < len(after) {
		order := 0
		switch {
		case i == len(before):
			order = 1
		case j == len(after):
			order = -1
		default:
			order = compare(&before[i], &after[j])
		}
		switch {
		case order < 0:
			pair(i, -1)
			i++
		case order > 0:
			pair(-1, j)
			j++
		default:
			pair(i, j)
			i, j = i+1, j+1
		}
	}
}

// presence is one holder or waiter, as far as it can be told from others between two looks. A label may change while
// somebody holds the lock.
type presence struct {
	holds         bool
	client, owner string
	token         uint64
	since         time.Time
}

// changesOf appends what has happened to one lock.
func changesOf(events []Event, before, after *Lock, now time.Time) []Event {
	was, is := presences(before), presences(after)
	event := func(what EventKind, client, owner, label string, token uint64, why string) {
		events = append(events, Event{
			Event: what, Kind: before.Kind, Name: before.Name, Client: client, Owner: owner, Label: label, Token: token,
			Why: why,
		})
	}
	for i := range before.Holders {
		if h := &before.Holders[i]; h.held() && !takeOne(is, h.presence()) {
			what, why := h.gone(after, now)
			event(what, h.Client, h.Owner, h.Label, h.Token, why)
		}
	}
	came := make(map[Endpoint]bool)
	var holders []*Holder
	for i := range after.Holders {
		if h := &after.Holders[i]; h.held() && !takeOne(was, h.presence()) {
			holders = append(holders, h)
			came[Endpoint{h.Owner, h.Client}] = true
		}
	}
	for i := range before.Waiters {
		w := &before.Waiters[i]
		if !takeOne(is, w.presence()) && !came[Endpoint{w.Owner, w.Client}] {
			event(Left, w.Client, w.Owner, w.Label, 0, "")
		}
	}
	for _, h := range holders {
		event(Held, h.Client, h.Owner, h.Label, h.Token, "")
	}
	for i := range after.Waiters {
		if w := &after.Waiters[i]; !takeOne(was, w.presence()) {
			event(Waiting, w.Client, w.Owner, w.Label, 0, "")
		}
	}
	return events
}

// gone says how h has ended, which is in the way of nobody in after.
func (h *Holder) gone(after *Lock, now time.Time) (EventKind, string) {
	for i := range after.Holders {
		switch other := &after.Holders[i]; {
		case other.Client != h.Client:
		case other.Cooldown && other.Token == h.Token:
			return Released, whyCooldown
		case other.Retained:
			return Released, whyRetained
		}
	}
	if !h.Until.IsZero() && !h.Until.After(now) {
		return Ended, ""
	}
	return Released, ""
}

// held reports whether an owner holds the lock by h.
func (h *Holder) held() bool { return !h.Cooldown && !h.Retained }

func (h *Holder) presence() presence { return presence{true, h.Client, h.Owner, h.Token, h.Since} }

func (w *Waiter) presence() presence { return presence{false, w.Client, w.Owner, 0, w.Since} }

// presences counts everybody: engines that tell little may show two alike.
func presences(l *Lock) map[presence]int {
	all := make(map[presence]int, len(l.Holders)+len(l.Waiters))
	for i := range l.Holders {
		if h := &l.Holders[i]; h.held() {
			all[h.presence()]++
		}
	}
	for i := range l.Waiters {
		all[l.Waiters[i].presence()]++
	}
	return all
}

// takeOne takes one p away, and reports whether there was any.
func takeOne(all map[presence]int, p presence) bool {
	if all[p] == 0 {
		return false
	}
	all[p]--
	return true
}

// ending is what is known of a hold that this program breaks. A look may show the end before the engine has answered
// the break: that is not told as well. If the break was refused, the hold has ended by itself, and it is.
type ending struct {
	asking int       // breaks that are not answered yet
	broken time.Time // when the first was answered; zero until then
	seen   []Event   // what the looks have shown
}

// endingHold is whose end it is.
type endingHold struct {
	id    string
	token uint64
}

func holdOf(e *Event) endingHold { return endingHold{ID(e.Kind, e.Name), e.Token} }

// asking is for before the engine is asked to end e's hold; broke or refused follows.
func (h *history) asking(e *Event) *ending {
	hold := holdOf(e)
	if h.endings[hold] == nil {
		h.endings[hold] = &ending{}
	}
	h.endings[hold].asking++
	return h.endings[hold]
}

// broke tells that the hold was broken.
func (h *history) broke(e Event, of *ending) {
	of.asking--
	now := time.Now()
	if of.broken.IsZero() {
		of.broken = now
	}
	e.Event, e.Time, e.After = Broken, instant(now), time.Time{}
	h.tell(e)
}

// refused tells what the looks have shown meanwhile, if no break of that hold has succeeded or may still do so. It
// reports whether that was anything.
func (h *history) refused(e *Event, of *ending) bool {
	of.asking--
	if of.asking > 0 || !of.broken.IsZero() {
		return false
	}
	delete(h.endings, holdOf(e))
	for _, seen := range of.seen {
		h.tell(seen)
	}
	return len(of.seen) > 0
}

// forgetEndings forgets those that a look has shown, which began after the break.
func (h *history) forgetEndings(began time.Time) {
	for hold, of := range h.endings {
		if of.asking == 0 && of.broken.Before(began) {
			delete(h.endings, hold)
		}
	}
}
