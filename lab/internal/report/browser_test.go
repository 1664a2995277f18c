package report

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/interlock-go/interlock/internal/servers"
)

// patience bounds everything that must happen at some time, on a machine that does much else.
const patience = 120 * time.Second

// browser is one Chromium for all tests: each has a profile of its own in it.
var browser struct {
	once sync.Once
	ctx  context.Context //nolint:containedctx // chromedp keeps the browser in it
	end  context.CancelFunc
	err  error
}

func TestMain(m *testing.M) {
	code := m.Run()
	if browser.end != nil {
		browser.end()
	}
	os.Exit(code)
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

// startBrowser starts the browser, which outlives the test that is the first to want it.
func startBrowser(t *testing.T) {
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
}

// openPage opens a file in a tab of its own.
func openPage(t *testing.T, file, fragment string) *tab {
	t.Helper()
	startBrowser(t)
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
	p.must(chromedp.Do(ctx, chromedp.Navigate("file://"+filepath.ToSlash(file)+fragment)))
	p.until("document.body.classList.contains('plays')")
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
		if strings.Contains(e.Entry.Text, "net::ERR_NETWORK_CHANGED") {
			return // an interface of the machine came or went, as in other tests
		}
		p.complaints = append(p.complaints, fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
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

// press types keys for whatever has the focus.
func (p *tab) press(keys ...string) {
	p.Helper()
	for _, r := range strings.Join(keys, "") {
		events := kb.Encode(r)
		down, up := *events[0], *events[len(events)-1]
		for _, e := range []input.DispatchKeyEventParams{down, up} {
			_, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, e)
			p.must(err)
		}
	}
}

func (p *tab) click(selector string) {
	p.Helper()
	p.must(chromedp.Do(p.ctx, chromedp.Click(chromedp.CSS(selector))))
}

// media has the page laid out for print, or for the screen again.
func (p *tab) media(kind string) {
	p.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{Media: kind})
	p.must(err)
}

// shown returns the texts of the elements that are seen.
func (p *tab) shown(selector string) []string {
	p.Helper()
	return eval[[]string](p, fmt.Sprintf("[...document.querySelectorAll(%q)]"+
		".filter((e) => e.checkVisibility({visibilityProperty: true})).map((e) => e.innerText.trim())", selector))
}

// wants fails the test if the texts of the elements that are seen are others.
func (p *tab) wants(selector string, texts ...string) {
	p.Helper()
	if got := p.shown(selector); strings.Join(got, "|") != strings.Join(texts, "|") {
		p.Errorf("%s shows %q, want %q", selector, got, texts)
	}
}
