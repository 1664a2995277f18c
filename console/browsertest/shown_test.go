package browsertest

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/console"
	"github.com/interlock-go/interlock/internal/browser"
)

func TestLocks_AppearAndGo(t *testing.T) {
	s := newSite(t, console.Options{})
	p := newTab(t)
	p.open(s.url(""))
	p.Shows("#empty", "No lock is held or waited for.")
	order := hold(t.Context(), t, s.newClient("shop-1"), "order:42", "checkout")
	p.Shows("tr[data-id='mutex/order:42'] .c-name", "order:42")
	p.Shows("tr[data-id='mutex/order:42'] .c-holder", "checkout")
	p.Shows("tr[data-id='mutex/order:42'] .c-holder", "shop-1")
	p.Shows("tr[data-id='mutex/order:42'] .c-lease", "s") // counts down
	p.Shows(".t-held", "1")
	release(t, order)
	p.Shows("#empty", "No lock is held or waited for.")
	p.Shows(".t-held", "0")
	p.Click(".tabs a[data-view=events]")
	p.Shows(".event[data-event=released]", "order:42")
	p.Shows(".event[data-event=held]", "order:42")
}

func TestWaits_AWaiterAndACycleAreShown(t *testing.T) {
	s := newSite(t, console.Options{})
	one, two := s.newClient("worker-1"), s.newClient("worker-2")
	// Each waits for what the other holds. Their owners have no names, so that neither client finds
	// the deadlock and ends it.
	a := hold(t.Context(), t, one, "account:1", "")
	b := hold(t.Context(), t, two, "account:2", "")
	waitFor(a.Context(t.Context()), t, one, "account:2")
	waitFor(b.Context(t.Context()), t, two, "account:1")
	p := newTab(t)
	p.open(s.url("#/locks/mutex/account:1"))
	p.Shows("tr[data-id='mutex/account:1'] .c-waiters", "1")
	p.Shows("#detail .queue", "worker-2")
	p.Shows("#n-waits", "1 cycle")
	p.Click(".tabs a[data-view=waits]")
	p.Shows(".cycles", "Deadlock of 2")
	p.Until("two edges of a cycle in the picture", "document.querySelectorAll('.picture .edge.in-cycle').length === 2")
	p.Until("the same in the list", "document.querySelectorAll('#edges li[data-cycle=true]').length === 2")
	p.Shows("#edges", "worker-1")
	p.Lacks(".cycles", "undefined")
}

func TestEngine_ThatDoesNotAnswer_IsSaid(t *testing.T) {
	s := newSite(t, console.Options{Timeout: 200 * time.Millisecond})
	hold(t.Context(), t, s.newClient("shop-1"), "order:42", "")
	p := newTab(t)
	p.open(s.url(""))
	p.Shows("td.c-name", "order:42")
	s.faults.Pause()
	p.Shows("#banner", "The engine does not answer.")
	p.Shows("#look", "old")
	p.Shows("td.c-name", "order:42") // what was seen last stays
	s.faults.Resume()
	p.Until("the banner to go", "document.getElementById('banner').hidden")
	p.Shows("#look", "live")
}

func TestConnection_ComesBackAfterTheConsoleRestarts(t *testing.T) {
	s := newSite(t, console.Options{})
	c := s.newClient("shop-1")
	hold(t.Context(), t, c, "before", "")
	p := newTab(t)
	p.Bear("ERR_CONNECTION_REFUSED|ERR_CONNECTION_RESET|ERR_INCOMPLETE_CHUNKED_ENCODING|ERR_EMPTY_RESPONSE")
	p.open(s.url(""))
	p.Shows("td.c-name", "before")
	s.stop()
	p.Shows("#banner", "The console does not answer.")
	hold(t.Context(), t, c, "meanwhile", "")
	s.start()
	p.Shows("td.c-name", "meanwhile")
	p.Until("the banner to go", "document.getElementById('banner').hidden")
}

// A browser has six connections for all tabs of a site together, so a tab that nobody sees has none.
func TestConnection_IsClosedWhileTheTabIsHidden(t *testing.T) {
	s := newSite(t, console.Options{})
	p := newTab(t)
	p.open(s.url(""))
	streams := func(want int32) {
		t.Helper()
		browser.Poll(t, fmt.Sprintf("%d streams", want), func() bool { return s.streams.Load() == want })
	}
	streams(1)
	p.hide(true)
	streams(0)
	hold(t.Context(), t, s.newClient("shop-1"), "meanwhile", "")
	p.hide(false)
	p.Shows("td.c-name", "meanwhile")
	streams(1)
}

// Whoever names a lock, or an owner, must not be able to write into the page.
func TestNames_AreTextWhateverTheyAre(t *testing.T) {
	s := newSite(t, console.Options{AllowBreak: true})
	const name = `<img src=x onerror="document.title='hit'">/é ?#%41&+:;=@!$'()*,~|`
	l := hold(t.Context(), t, s.newClient("<b>shop</b>"), name, "<i>label</i>")
	p := newTab(t)
	p.open(s.url(""))
	p.Shows("td.c-name", name)
	p.Shows("td.c-holder", "<i>label</i>")
	p.Click("td.c-name")
	p.Shows("#detail-name", name)
	p.Shows("#detail .holder", "<b>shop</b>")
	p.Press("\x1b")
	release(t, l)
	hold(t.Context(), t, s.newClient("shop-2"), name, "")
	p.Click(".tabs a[data-view=events]")
	p.Click(".event[data-event=released] a") // its address is made by the page, that of the row by the console
	p.Shows("#detail-name", name)
	p.Shows("#detail .holder", "shop-2")
	if n := eval[int](p, "document.querySelectorAll('main img, main b, main i, #detail img').length"); n > 0 {
		t.Errorf("%d elements were made of names", n)
	}
}

func TestTrace_AtTheEndOfALabelIsAFactOfItsOwn(t *testing.T) {
	s := newSite(t, console.Options{})
	const trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	hold(t.Context(), t, s.newClient("shop-1"), "refund", "nightly traceparent=00-"+trace+"-00f067aa0ba902b7-01")
	p := newTab(t)
	p.open(s.url(""))
	p.Shows("td.c-holder", "nightly")
	if text := eval[string](p, "document.querySelector('td.c-holder').textContent"); strings.Contains(text, trace) {
		t.Errorf("the table shows %q", text)
	}
	p.Click("td.c-name")
	p.Shows("#detail .holder", trace)
}

func TestEngine_SaysWhatItTells(t *testing.T) {
	s := newSite(t, console.Options{})
	hold(t.Context(), t, s.newClient("shop-1"), "order:42", "")
	p := newTab(t)
	p.open(s.url("#/engine"))
	p.Until("every row of the matrix with an answer",
		"(rows => rows.length === 7 && rows.every((r) => /yes|no/.test(r.cells[1].innerText)))"+
			"([...document.querySelectorAll('.matrix tbody tr')])")
	p.Shows(".matrix tr[data-ok=false] .why", "this console does not break locks")
	p.Click(".tabs a[data-view=locks]")
	p.Click("tr[data-id='mutex/order:42']")
	p.Shows("#break-note", "this console does not break locks")
	if eval[bool](p, "Boolean(document.querySelector('#detail [data-break]:not([hidden])'))") {
		t.Error("there is a button to break a hold, which this console does not")
	}
}

func TestFilters_FindWhatIsAskedFor(t *testing.T) {
	s := newSite(t, console.Options{})
	c := s.newClient("shop-1")
	hold(t.Context(), t, c, "order:1", "red")
	hold(t.Context(), t, c, "order:2", "green")
	waitFor(t.Context(), t, s.newClient("shop-2"), "order:2")
	p := newTab(t)
	p.open(s.url(""))
	p.Shows("td.c-name", "order:2")
	p.Press("/")
	p.Press("red")
	p.Lacks("td.c-name", "order:2")
	p.Shows("td.c-name", "order:1")
	p.Press("zzz")
	p.Shows("#empty", "No lock matches")
	p.Press("\x1b")
	p.Shows("td.c-name", "order:1")
	p.Click("#only-waiting")
	p.Lacks("td.c-name", "order:1")
	p.Shows("td.c-name", "order:2")
	p.Click("#only-waiting")
	p.Click("th[data-column=name] button") // by name, downwards
	p.Until("order:2 first", "document.querySelector('tr[data-id]').dataset.id === 'mutex/order:2'")
	got := eval[string](p, "document.querySelector('th[data-column=name]').getAttribute('aria-sort')")
	if got != "descending" {
		t.Errorf("aria-sort is %q", got)
	}
}
