package browsertest

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/console"
)

// holding keeps the page's requests to some addresses until the test lets them go, and notes its streams of events.
const holding = `
window.streams = [];
window.EventSource = class extends EventSource {
  constructor(url) { super(url); window.streams.push(this); }
};
window.late = [];
window.hold = '';
const real = window.fetch;
window.fetch = (url, ...more) => {
  if (!window.hold || !String(url).startsWith(window.hold)) return real(url, ...more);
  const answer = real(url, ...more);
  return new Promise((good, bad) => answer.then(
    (a) => window.late.push({ good: () => good(a), bad: () => bad(new TypeError('no answer')) }), bad));
};`

// hide has the page think that its tab is hidden, or shown.
func (p *tab) hide(hidden bool) {
	p.Helper()
	eval[any](p, fmt.Sprintf(
		"Object.defineProperty(document, 'hidden', {value: %v, configurable: true}) && null", hidden))
	eval[any](p, "document.dispatchEvent(new Event('visibilitychange')) && null")
}

// retrying returns a page that has lost its connection and asks why, without an answer yet.
func retrying(t *testing.T, s *site) *tab {
	t.Helper()
	p := newTab(t)
	p.Before(holding)
	p.open(s.url(""))
	eval[any](p, "(window.hold = 'api/board', window.streams.at(-1).dispatchEvent(new Event('error'))) && null")
	p.Until("a question", "window.late.length === 1")
	return p
}

func TestConnection_IsNotOpenedByAnAnswerAfterTheTabWasHidden(t *testing.T) {
	p := retrying(t, newSite(t, console.Options{}))
	p.hide(true)
	eval[any](p, "window.late[0].good()")
	if n := eval[int](p, "window.streams.length"); n != 1 {
		t.Errorf("%d streams were opened, the last one in a hidden tab", n)
	}
	p.hide(false)
	p.Until("a stream", "window.streams.length === 2 && document.getElementById('look').dataset.state === 'good'")
}

func TestConnection_IsNotClosedByTheFailureOfAnOldQuestion(t *testing.T) {
	p := retrying(t, newSite(t, console.Options{}))
	p.hide(true)
	p.hide(false)
	p.Until("a stream", "window.streams.length === 2 && document.getElementById('look').dataset.state === 'good'")
	eval[any](p, "window.late[0].bad()")
	if state := eval[int](p, "window.streams.at(-1).readyState"); state != 1 {
		t.Errorf("the stream is closed: %d", state)
	}
}

func TestRefresh_OfALockThatIsFree_MakesNoRow(t *testing.T) {
	s := newSite(t, console.Options{})
	c := s.newClient("shop-1")
	order := hold(t.Context(), t, c, "order:42", "")
	p := newTab(t)
	p.open(s.url("#/locks/mutex/order:42"))
	p.Shows("#detail .holder", "shop-1")
	release(t, order)
	p.Shows("#n-locks", "0")
	p.Click("#look-now")
	p.Shows(".pane-foot", "Nobody holds it or waits for it.")
	hold(t.Context(), t, c, "other", "")
	p.Shows("td.c-name", "other")
	if n := eval[string](p, "document.getElementById('n-locks').innerText"); n != "1" {
		t.Errorf("the page has %s locks", n)
	}
}

// An answer may come after the stream has told something newer.
func TestRefresh_DoesNotPutAnOlderAnswerInPlaceOfANewerMessage(t *testing.T) {
	s := newSite(t, console.Options{})
	first := hold(t.Context(), t, s.newClient("shop-1"), "order:42", "")
	p := newTab(t)
	p.Before(holding)
	p.open(s.url("#/locks/mutex/order:42"))
	p.Shows("#detail .holder", "shop-1")
	eval[any](p, "(window.hold = 'api/lock') && null")
	p.Click("#look-now")
	p.Until("an answer", "window.late.length === 1")
	release(t, first)
	hold(t.Context(), t, s.newClient("shop-2"), "order:42", "")
	p.Shows("#detail .holder", "shop-2")
	eval[any](p, "window.late[0].good()")
	p.Shows(".pane-foot", "Refreshed at")
	hold(t.Context(), t, s.newClient("shop-3"), "other", "")
	p.Shows("td.c-holder", "shop-3")
	// At once: the next renewal would put it right.
	text := eval[string](p, "document.querySelector('#detail .holder').innerText")
	if !strings.Contains(text, "shop-2") {
		t.Errorf("the pane shows an old holder: %s", text)
	}
}

// The board has no room for a lock, so nothing but the page itself asks for it.
func TestDetail_OfALockBeyondTheBoard_FollowsIt(t *testing.T) {
	s := newSite(t, console.Options{MaxLocks: 1})
	c := s.newClient("shop-1")
	hold(t.Context(), t, c, "a", "")
	hold(t.Context(), t, c, "aa", "")
	last := hold(t.Context(), t, s.newClient("shop-2"), "z", "")
	p := newTab(t)
	p.open(s.url("#/locks/mutex/z"))
	p.Shows("#detail .holder", "shop-2")
	release(t, last)
	p.Shows("#detail .sum", "Nobody holds it or waits for it any more.")
	hold(t.Context(), t, s.newClient("shop-3"), "z", "")
	p.Shows("#detail .holder", "shop-3")
	if n := eval[string](p, "document.getElementById('n-locks').innerText"); n != "1" {
		t.Errorf("the page has %s locks", n)
	}
}
