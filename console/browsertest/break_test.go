package browsertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console"
)

// lost waits for the end of a holder's context and returns why it ended.
func lost(ctx context.Context, t *testing.T) interlock.LostReason {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(patience):
		t.Fatal("the hold has not ended")
	}
	var e *interlock.LostError
	if !errors.As(context.Cause(ctx), &e) {
		t.Fatalf("the hold ended with %v", context.Cause(ctx))
	}
	return e.Reason
}

func TestBreak_NeedsTheNameAndEndsTheHold(t *testing.T) {
	s := newSite(t, console.Options{AllowBreak: true})
	work := hold(t.Context(), t, s.newClient("shop-1"), "order:42", "checkout").Context(t.Context())
	p := newTab(t)
	p.open(s.url(""))
	p.shows("td.c-name", "order:42")
	p.click("tr[data-id='mutex/order:42']")
	p.click("#detail [data-break]")
	p.shows("#break-meaning", "may still be writing")
	mayNot := func(typed string) {
		t.Helper()
		if !eval[bool](p, "document.getElementById('break-confirm').disabled") {
			t.Errorf("the button can be pressed after %q", typed)
		}
	}
	mayNot("")
	p.press("order:4")
	mayNot("order:4")
	p.press("\r") // sends nothing
	if work.Err() != nil {
		t.Fatalf("the hold ended without the name: %v", context.Cause(work))
	}
	p.press("2")
	p.until("the button", "!document.getElementById('break-confirm').disabled")
	p.click("#break-confirm")
	p.shows("#break-result", "Broken")
	if reason := lost(work, t); reason != interlock.LostBroken {
		t.Errorf("the holder was told %v", reason)
	}
	p.shows(".event[data-event=broken]", "broken")
	p.click(".tabs a[data-view=engine]")
	p.click("#audit-show")
	p.shows("#audit", "order:42")
	s.stop()
	p.bear("ERR_")
	if !strings.Contains(s.audit.String(), `"result":"broken"`) {
		t.Errorf("the audit has\n%s", s.audit.String())
	}
}

func TestBreak_ByKeyboardAlone(t *testing.T) {
	s := newSite(t, console.Options{AllowBreak: true})
	c := s.newClient("shop-1")
	hold(t.Context(), t, c, "order:41", "")
	work := hold(t.Context(), t, c, "order:42", "").Context(t.Context())
	p := newTab(t)
	p.open(s.url(""))
	p.shows("td.c-name", "order:42")
	p.press("jj")
	p.until("the second row to be active",
		"document.querySelector('tr[aria-selected=true]')?.dataset.id === 'mutex/order:42'")
	p.press("\r")
	p.shows("#detail-name", "order:42")
	p.press("b")
	p.until("the focus on the button", "document.activeElement?.matches('[data-break]')")
	p.press("\r")
	p.until("the focus on the field", "document.activeElement?.id === 'break-typed'")
	p.press("order:42\r")
	p.shows("#break-result", "Broken")
	lost(work, t)
	p.press("\x1b") // closes the form
	p.until("the form to go", "!document.getElementById('break-typed')")
	p.press("\x1b") // closes the pane
	p.until("the pane to go", "document.getElementById('detail').hidden")
	p.press("?")
	p.until("the help", "document.getElementById('keys').open")
	p.shows("#keys", "search")
}

// A hold that has passed on since it was seen is not broken: the one who holds the lock now is another.
func TestBreak_OfAHoldThatIsOver_SaysSo(t *testing.T) {
	s := newSite(t, console.Options{AllowBreak: true})
	c := s.newClient("shop-1")
	first := hold(t.Context(), t, c, "order:42", "")
	p := newTab(t)
	p.bear(`409 \(Conflict\)`)
	p.open(s.url("#/locks/mutex/order:42"))
	p.click("#detail [data-break]")
	release(t, first)
	second := hold(t.Context(), t, c, "order:42", "").Context(t.Context())
	p.press("order:42\r")
	p.shows("#break-result", "Not broken")
	if second.Err() != nil {
		t.Errorf("the next hold was broken: %v", context.Cause(second))
	}
}
