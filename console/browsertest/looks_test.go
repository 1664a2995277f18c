package browsertest

import (
	"fmt"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/interlock-go/interlock/console"
)

// views are those of the page, as its address names them.
var views = []string{"locks", "waits", "kinds", "events", "engine"}

func TestWords_InBothLanguagesOnEachView(t *testing.T) {
	s := newSite(t, console.Options{})
	c := s.newClient("shop-1")
	hold(t.Context(), t, c, "order:42", "")
	waitFor(t.Context(), t, s.newClient("shop-2"), "order:42")
	p := newTab(t)
	p.open("http://" + s.addr + "/?lang=zh#/locks/mutex/order:42")
	check := func(lang, locks, holders string) {
		t.Helper()
		p.Until("the language "+lang, fmt.Sprintf("document.documentElement.lang === %q", lang))
		p.Shows(".tabs", locks)
		p.Shows("#detail h3", holders)
		for _, view := range views { // a text that is missing is an error in the page's console
			p.Click(".tabs a[data-view=" + view + "]")
			p.Until("the view "+view, fmt.Sprintf("!document.getElementById('view-%s').hidden", view))
		}
	}
	check("zh-CN", "等待关系", "持有者")
	p.Shows("#break-note", "本控制台不允许强制解除") // what the console says of itself
	p.Click("#lang")
	check("en", "Waits", "Holders")
	// The choice lasts, where the address does not say otherwise.
	p.open("http://" + s.addr + "/")
	p.Click("#lang")
	p.Shows(".tabs", "等待关系")
	p.open("http://" + s.addr + "/#/events")
	p.Shows(".tabs", "等待关系")
}

func TestColours_FollowTheSystemAndTheSwitch(t *testing.T) {
	s := newSite(t, console.Options{})
	p := newTab(t)
	const light, dark = "rgb(246, 246, 244)", "rgb(18, 20, 23)"
	is := func(want, when string) {
		t.Helper()
		if got := eval[string](p, "getComputedStyle(document.body).backgroundColor"); got != want {
			t.Errorf("%s the background is %s", when, got)
		}
	}
	p.Prefer("prefers-color-scheme", "dark")
	p.open(s.url(""))
	is(dark, "on a dark system")
	p.Click("#theme") // from the system's choice to light
	is(light, "switched to light on a dark system")
	p.Prefer("prefers-color-scheme", "light")
	p.Click("#theme")
	is(dark, "switched to dark on a light system")
	p.open(s.url("#/events"))
	is(dark, "when the page is opened again")
	p.Click("#theme")
	is(light, "on a light system")
}

func TestMotion_IsLeftOutForWhoWantsNone(t *testing.T) {
	s := newSite(t, console.Options{})
	hold(t.Context(), t, s.newClient("shop-1"), "order:42", "")
	p := newTab(t)
	p.open(s.url(""))
	p.Shows("td.c-name", "order:42")
	const duration = "getComputedStyle(document.querySelector('.locks .fill')).transitionDuration"
	if got := eval[string](p, duration); got != "1s" {
		t.Errorf("a bar moves for %s", got)
	}
	p.Prefer("prefers-reduced-motion", "reduce")
	if got := eval[string](p, duration); got != "0s" {
		t.Errorf("a bar moves for %s although no motion is wanted", got)
	}
}

func TestKinds_HaveCards(t *testing.T) {
	s := newSite(t, console.Options{})
	c := s.newClient("worker-1")
	_, err := c.Semaphore("payments", 5, nil).Acquire(t.Context(), 3)
	s.must(err)
	_, err = c.Election("scheduler", nil).Campaign(t.Context(), "10.0.0.7:8443")
	s.must(err)
	_, err = c.RWMutex("catalogue", nil).RLock(t.Context())
	s.must(err)
	_, err = c.Latch("ready").Set(t.Context(), 4)
	s.must(err)
	p := newTab(t)
	p.open(s.url("#/kinds"))
	p.Shows(".card", "3 of 5 used")
	p.Shows(".card", "10.0.0.7:8443")
	p.Shows(".card", "1 reader")
	p.Click("#latch-name")
	p.Press("ready\r")
	p.Shows("#latches .card", "4 to go")
	p.Click("a.card[href*=payments]")
	p.Shows("#detail", "3 of 5 permits are in use.")
}

// What assistive technology reads: each control has a name, and what the keyboard can reach has a visible focus.
func TestControls_HaveNamesAndNothingOverflows(t *testing.T) {
	s := newSite(t, console.Options{AllowBreak: true})
	hold(t.Context(), t, s.newClient("shop-1"),
		"order:42:of-a-customer-whose-name-is-longer-than-anything-that-fits-a-telephone", "")
	p := newTab(t)
	p.open(s.url(""))
	p.Shows("td.c-name", "order:42")
	for _, width := range []int64{1280, 390} {
		p.Must(chromedp.Do(p.Ctx, chromedp.EmulateViewport(width, 800)))
		for _, view := range views {
			eval[any](p, fmt.Sprintf("(location.hash = '#/%s') && null", view))
			p.Until("the view "+view, fmt.Sprintf("!document.getElementById('view-%s').hidden", view))
			if nameless := eval[[]string](p, namelessControls); len(nameless) > 0 {
				t.Errorf("%s: no name for %v", view, nameless)
			}
			if wide := eval[int64](p, "document.documentElement.scrollWidth"); wide > width {
				t.Errorf("%s: %d pixels wide on a screen of %d", view, wide, width)
			}
		}
	}
	// A press on Tab goes to the link that skips the head of the page, and its focus is seen.
	p.open(s.url("#/events"))
	p.Press("\t")
	got := eval[string](p, "document.activeElement.id + ' ' + getComputedStyle(document.activeElement).outlineStyle")
	if got != "skip solid" {
		t.Errorf("the first Tab leads to %q", got)
	}
}

const namelessControls = `[...document.querySelectorAll('button, a, input, [role=grid], [role=group], svg[role=img]')]
	.filter((e) => !e.closest('[hidden]') && !(e.innerText || e.getAttribute('aria-label') ||
		e.labels?.length || e.getAttribute('aria-labelledby')))
	.map((e) => e.outerHTML.slice(0, 90))`

func TestReaders_AndWritersAreTold(t *testing.T) {
	s := newSite(t, console.Options{})
	c := s.newClient("web-1")
	for range 2 {
		_, err := c.RWMutex("catalogue", nil).RLock(t.Context())
		s.must(err)
	}
	_, err := c.RWMutex("prices", nil).Lock(t.Context())
	s.must(err)
	p := newTab(t)
	p.open(s.url("#/kinds"))
	p.Shows(".card", "2 readers")
	p.Shows(".card", "1 writer")
}
