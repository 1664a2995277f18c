package board

import "time"

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
