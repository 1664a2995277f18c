package breaking

import (
	"context"
	"fmt"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/interlock-go/interlock/internal/servers"
)

// patience bounds everything that must happen at some time, on a machine that does much else.
const patience = 120 * time.Second

// browser is one Chromium for all tests.
var browser struct {
	once sync.Once
	ctx  context.Context //nolint:containedctx // chromedp keeps the browser in it
	end  context.CancelFunc
	err  error
}

// tab is the page in a real Chromium. What the page complains of fails its test.
type tab struct {
	*testing.T
	ctx context.Context //nolint:containedctx // chromedp keeps the tab in it

	mu         sync.Mutex // guards complaints, which the browser's events write
	complaints []string
}

// chromium returns the path of the browser, or skips or fails t.
func chromium(t *testing.T) string {
	t.Helper()
	required := servers.Required("all", "chromium")
	if testing.Short() && !required {
		t.Skip("it needs chromium, and -short starts no browser")
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome", "google-chrome-stable"} {
		if path, err := exec.LookPath(name); err == nil {
			return path
		}
	}
	const missing = "there is no chromium on PATH: install chromium"
	if required {
		t.Fatal(missing + ", INTERLOCK_REQUIRE wants it")
	}
	t.Skip(missing)
	return ""
}

// open opens an address in a tab of its own.
func open(t *testing.T, url string) *tab {
	t.Helper()
	path := chromium(t)
	browser.once.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("lang", "en-US"),
			chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(patience))
		allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
		ctx, cancel := chromedp.NewContext(allocator)
		browser.ctx = ctx
		browser.end = func() {
			cancel()
			stop()
		}
		browser.err = chromedp.Do(ctx)
	})
	if browser.err != nil {
		t.Fatalf("start %s: %v", path, browser.err)
	}
	ctx, cancel := chromedp.NewContext(browser.ctx, chromedp.WithNewBrowserContext())
	p := &tab{T: t, ctx: ctx}
	t.Cleanup(func() {
		cancel()
		p.mu.Lock()
		defer p.mu.Unlock()
		for _, c := range p.complaints {
			t.Errorf("the page complains: %s", c)
		}
	})
	p.must(chromedp.Do(ctx, chromedp.EmulateViewport(1200, 1000)))
	p.must(chromedp.Listen(ctx, p.heard))
	_, err := chromedp.Call(ctx, runtime.Enable, cdp.Empty{})
	p.must(err)
	_, err = chromedp.Call(ctx, cdplog.Enable, cdp.Empty{}) // violations of the content security policy are told here
	p.must(err)
	p.must(chromedp.Do(ctx, chromedp.Navigate(url)))
	p.until("document.querySelectorAll('#steps li').length > 0")
	return p
}

func (p *tab) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// heard takes in what the page throws, and what the browser writes about it.
func (p *tab) heard(event any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch e := event.(type) {
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		p.complaints = append(p.complaints, "exception: "+text)
	case *cdplog.EventEntryAdded:
		if !strings.Contains(e.Entry.Text, "net::ERR_NETWORK_CHANGED") { // an interface of the machine came or went
			p.complaints = append(p.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	}
}

// eval returns the value of an expression in the page.
func eval[T any](p *tab, expression string) T {
	p.Helper()
	v, err := chromedp.Run(p.ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return v
}

// until waits until a condition in the page holds.
func (p *tab) until(condition string) {
	p.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !eval[bool](p, "Boolean("+condition+")") {
		select {
		case <-again.C:
		case <-deadline.C:
			shown := eval[string](p, "document.body.innerText")
			p.Fatalf("waited %v for %s; the page shows\n%s", patience, condition, shown)
		}
	}
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
		on(document.querySelector('#palette [data-action="%s"]'), 'dragstart');
		on(li, 'dragover');
		on(li, 'drop')}`, n, action))
}

// told is what the player in the frame tells.
const told = "document.getElementById('told').contentDocument"

func TestPage_APersonBreaksALock_AndSeesWhatHappened(t *testing.T) {
	s := newSite(t)
	p := open(t, s.url)
	p.choose("course", "D4")
	p.choose("step-3", "stops") // after A's GET
	p.drag("passes", 4)
	if got := eval[string](p, "[...document.querySelectorAll('.chip')].map((c) => c.ariaLabel).join()"); got !=
		"Remove: ❚❚ stop,Remove: ⊘ the lease ends" {
		t.Errorf("the faults are %s", got)
	}
	if got := eval[string](p, "document.activeElement.id"); got != "step-3" {
		t.Errorf("the focus is at %q", got)
	}
	p.must(chromedp.Do(p.ctx, chromedp.Click(chromedp.CSS("#run"))))
	p.until(told + "?.body?.classList.contains('plays')")
	text := eval[string](p, told+".querySelector('.steps').textContent")
	for _, part := range []string{"A stands still before it sends DEL stock.", "Two were inside at once."} {
		if !strings.Contains(text, part) {
			t.Errorf("it does not tell %q but %s", part, text)
		}
	}
	p.must(chromedp.Do(p.ctx, chromedp.Click(chromedp.CSS("#clear"))))
	if n := eval[int](p, "document.querySelectorAll('.chip').length"); n != 0 {
		t.Errorf("%d faults are left", n)
	}
}

func TestPage_HasBothLanguages_AndOffersWhatFits(t *testing.T) {
	p := open(t, newSite(t).url)
	p.must(chromedp.Do(p.ctx, chromedp.Click(chromedp.CSS("label[for=zh]"))))
	p.until("document.documentElement.lang === 'zh-CN'")
	p.choose("course", "interlock")
	offered := "[...document.querySelectorAll('#palette li')].filter((e) => !e.hidden)" +
		".map((e) => e.innerText.trim()).join()"
	if got := eval[string](p, offered); got != "✖ 杀死,❚❚ 停住,⊘ 租约到期" {
		t.Errorf("it offers %s", got)
	}
	for range 2 {
		p.drag("dies", 2) // B was refused: nothing can befall it
	}
	if n := eval[int](p, "document.querySelectorAll('.chip').length"); n != 0 {
		t.Errorf("%d faults are put behind a step that takes none", n)
	}
}
