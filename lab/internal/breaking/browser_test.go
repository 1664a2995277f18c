package breaking

import (
	"fmt"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/internal/browser"
)

// tab is the page in a real Chromium.
type tab struct{ *browser.Tab }

// open opens an address in a tab of its own, and waits for the first course.
func open(t *testing.T, url string) *tab {
	t.Helper()
	p := &tab{browser.New(t, 1200, 1000)}
	p.Go(url)
	p.Until("the steps", "document.querySelectorAll('#steps li').length > 0")
	return p
}

// eval returns the value of an expression in the page.
func eval[T any](p *tab, expression string) T {
	p.Helper()
	return browser.Eval[T](p.Tab, expression)
}

// choose chooses an option of a list, as the keyboard does.
func (p *tab) choose(id, value string) {
	p.Helper()
	eval[bool](p, fmt.Sprintf("{const s = document.getElementById(%q); s.focus(); s.value = %q;"+
		" s.dispatchEvent(new Event('change', {bubbles: true}))}", id, value))
}

// drag drags a fault onto the n-th step.
func (p *tab) drag(action string, n int) {
	p.Helper()
	eval[bool](p, fmt.Sprintf(`{
		const with_ = {bubbles: true, cancelable: true, dataTransfer: new DataTransfer()};
		const on = (el, kind) => el.dispatchEvent(new DragEvent(kind, with_));
		const li = document.querySelectorAll('#steps li')[%d - 1];
		on(document.querySelector('#palette [data-action="%s"]'), 'dragstart'); on(li, 'dragover'); on(li, 'drop')}`,
		n, action))
}

// told is what the player in the frame tells.
const told = "document.getElementById('told').contentDocument"

func TestPage_APersonBreaksALock_AndSeesWhatHappened(t *testing.T) {
	s := newSite(t)
	p := open(t, s.url)
	p.choose("course", "D4")
	p.choose("step-3", "stops") // after A's GET
	p.drag("passes", 4)
	p.drag("dies", 5) // A's program is over there
	offered := "[...document.querySelectorAll('#step-4 option')].map((o) => o.value).join()"
	if got := eval[string](p, offered); got != ",passes" {
		t.Errorf("after A's last step it offers %q", got)
	}
	if got := eval[string](p, "[...document.querySelectorAll('.chip')].map((c) => c.ariaLabel).join()"); got !=
		"Remove: ❚❚ stop,Remove: ⊘ the lease ends" {
		t.Errorf("the faults are %s", got)
	}
	if got := eval[string](p, "document.activeElement.id"); got != "step-3" {
		t.Errorf("the focus is at %q", got)
	}
	p.Click("#run")
	p.Until("the player", told+"?.body?.classList.contains('plays')")
	text := eval[string](p, told+".querySelector('.steps').textContent")
	for _, part := range []string{"A stands still before it sends DEL stock.", "Two were inside at once."} {
		if !strings.Contains(text, part) {
			t.Errorf("it does not tell %q but %s", part, text)
		}
	}
	p.Click("#clear")
	if n := eval[int](p, "document.querySelectorAll('.chip').length"); n != 0 {
		t.Errorf("%d faults are left", n)
	}
}

func TestPage_HasBothLanguages_AndOffersWhatFits(t *testing.T) {
	p := open(t, newSite(t).url)
	p.Click("label[for=zh]")
	p.Until("Chinese", "document.documentElement.lang === 'zh-CN'")
	p.choose("course", "interlock")
	offered := "[...document.querySelectorAll('#palette li')].filter((e) => !e.hidden)" +
		".map((e) => e.innerText.trim()).join()"
	if got := eval[string](p, offered); got != "✖ 杀死,❚❚ 停住,⊘ 租约到期,⌁ 切断网线,◷ 时钟跳变" {
		t.Errorf("it offers %s", got)
	}
	for range 2 {
		p.drag("dies", 2) // B was refused: nothing can befall it
	}
	if n := eval[int](p, "document.querySelectorAll('.chip').length"); n != 0 {
		t.Errorf("%d faults are put behind a step that takes none", n)
	}
}
