package browsertest

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console"
	"github.com/interlock-go/interlock/internal/browser"
)

// lost waits for the end of a holder's context and returns why it ended.
func lost(ctx context.Context, t *testing.T) interlock.LostReason {
	t.Helper()
	select {
	case <-ctx.Done():
	case <-time.After(browser.Patience):
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
	p.Shows("td.c-name", "order:42")
	p.Click("tr[data-id='mutex/order:42']")
	p.Click("#detail [data-break]")
	p.Shows("#break-meaning", "may still be writing")
	mayNot := func(typed string) {
		t.Helper()
		if !eval[bool](p, "document.getElementById('break-confirm').disabled") {
			t.Errorf("the button can be pressed after %q", typed)
		}
	}
	mayNot("")
	p.Press("order:4")
	mayNot("order:4")
	p.Press("\r") // sends nothing
	if work.Err() != nil {
		t.Fatalf("the hold ended without the name: %v", context.Cause(work))
	}
	p.Press("2")
	p.Until("the button", "!document.getElementById('break-confirm').disabled")
	p.Click("#break-confirm")
	p.Shows("#break-result", "Broken")
	if reason := lost(work, t); reason != interlock.LostBroken {
		t.Errorf("the holder was told %v", reason)
	}
	p.Shows(".event[data-event=broken]", "broken")
	p.Click(".tabs a[data-view=engine]")
	p.Click("#audit-show")
	p.Shows("#audit", "order:42")
	s.stop()
	p.Bear("ERR_")
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
	p.Shows("td.c-name", "order:42")
	p.Press("jj")
	p.Until("the second row to be active",
		"document.querySelector('tr[aria-selected=true]')?.dataset.id === 'mutex/order:42'")
	p.Press("\r")
	p.Shows("#detail-name", "order:42")
	p.Press("b")
	p.Until("the focus on the button", "document.activeElement?.matches('[data-break]')")
	p.Press("\r")
	p.Until("the focus on the field", "document.activeElement?.id === 'break-typed'")
	p.Press("order:42\r")
	p.Shows("#break-result", "Broken")
	lost(work, t)
	p.Press("\x1b") // closes the form
	p.Until("the form to go", "!document.getElementById('break-typed')")
	p.Press("\x1b") // closes the pane
	p.Until("the pane to go", "document.getElementById('detail').hidden")
	p.Press("?")
	p.Until("the help", "document.getElementById('keys').open")
	p.Shows("#keys", "search")
}

func TestBreak_KeepsWhatWasTypedAndWhatCameOfItInTheOtherLanguage(t *testing.T) {
	s := newSite(t, console.Options{AllowBreak: true})
	hold(t.Context(), t, s.newClient("shop-1"), "order:42", "")
	p := newTab(t)
	p.open(s.url("#/locks/mutex/order:42"))
	p.Click("#detail [data-break]")
	p.Press("order:4")
	p.Click("#lang")
	p.Shows("#break-confirm", "强制解除")
	if typed := eval[string](p, "document.getElementById('break-typed').value"); typed != "order:4" {
		t.Fatalf("the field has %q", typed)
	}
	p.Click("#break-typed")
	p.Press("2\r")
	p.Until("the result", "document.getElementById('break-result').dataset.state === 'good'")
	p.Click("#lang")
	p.Shows("#break-result", "Broken")
	if !eval[bool](p, "document.getElementById('break-confirm').disabled") {
		t.Error("what is done can be asked for again")
	}
}

// A hold that has passed on since it was seen is not broken: the one who holds the lock now is another.
func TestBreak_OfAHoldThatIsOver_SaysSo(t *testing.T) {
	s := newSite(t, console.Options{AllowBreak: true})
	c := s.newClient("shop-1")
	first := hold(t.Context(), t, c, "order:42", "")
	p := newTab(t)
	p.Bear(`409 \(Conflict\)`)
	p.open(s.url("#/locks/mutex/order:42"))
	p.Click("#detail [data-break]")
	release(t, first)
	second := hold(t.Context(), t, c, "order:42", "").Context(t.Context())
	p.Press("order:42\r")
	p.Shows("#break-result", "Not broken")
	if second.Err() != nil {
		t.Errorf("the next hold was broken: %v", context.Cause(second))
	}
}
