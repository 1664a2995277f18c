package browsertest

import (
	"context"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdplog "github.com/chromedp/cdproto/log"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/interlock-go/interlock/internal/servers"
)

// patience bounds everything that must happen at some time, on a machine that does much else.
const patience = 60 * time.Second

// chromium is one browser for all tests of this package: each has a profile of its own in it.
var chromium struct {
	once sync.Once
	ctx  context.Context //nolint:containedctx // chromedp keeps the browser in it
	end  context.CancelFunc
	err  error
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if chromium.end != nil {
		chromium.end()
	}
	os.Exit(code)
}

// browser returns the context of the browser, or skips or fails t.
func browser(t *testing.T) context.Context {
	t.Helper()
	path := find(t)
	chromium.once.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
			chromedp.Flag("lang", "en-US"),
			chromedp.Flag("host-resolver-rules", "MAP *.example 127.0.0.1"), // a name is not trusted as loopback is
			chromedp.WSURLReadTimeout(patience))
		// The browser outlives this test.
		allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
		ctx, cancel := chromedp.NewContext(allocator)
		chromium.ctx = ctx
		chromium.end = func() {
			cancel()
			stop()
		}
		chromium.err = chromedp.Do(ctx) // starts it
	})
	if chromium.err != nil {
		t.Fatalf("start %s: %v", path, chromium.err)
	}
	return chromium.ctx
}

// find returns the path of Chromium, or skips or fails t.
func find(t *testing.T) string {
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

// tab is a page in the browser. What the page complains of fails its test.
type tab struct {
	*testing.T
	ctx context.Context //nolint:containedctx // chromedp keeps the tab in it

	mu         sync.Mutex // guards what follows
	complaints []string
	bears      *regexp.Regexp // complaints that the test makes happen, nil for none
}

// newTab opens an empty tab in a profile of its own.
func newTab(t *testing.T) *tab {
	t.Helper()
	p := &tab{T: t}
	ctx, cancel := chromedp.NewContext(browser(t), chromedp.WithNewBrowserContext())
	p.ctx = ctx
	t.Cleanup(func() {
		if t.Failed() {
			p.tellWhatIsShown()
		}
		cancel()
		p.judge()
	})
	p.must(chromedp.Do(ctx, chromedp.EmulateViewport(1280, 800)))
	p.must(chromedp.Listen(ctx, p.heard))
	_, err := chromedp.Call(ctx, runtime.Enable, cdp.Empty{})
	p.must(err)
	_, err = chromedp.Call(ctx, cdplog.Enable, cdp.Empty{}) // violations of the content security policy are told here
	p.must(err)
	return p
}

func (p *tab) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// heard takes in what the page writes to its console, and what the browser writes about the page.
func (p *tab) heard(event any) {
	switch e := event.(type) {
	case *runtime.EventConsoleAPICalled:
		if e.Type == "error" || e.Type == "warning" || e.Type == "assert" {
			words := []string{string(e.Type)}
			for _, arg := range e.Args {
				words = append(words, string(arg.Value)+arg.Description)
			}
			p.complain(strings.Join(words, " "))
		}
	case *runtime.EventExceptionThrown:
		text := e.ExceptionDetails.Text
		if e.ExceptionDetails.Exception != nil {
			text += " " + e.ExceptionDetails.Exception.Description
		}
		p.complain("exception: " + text)
	case *cdplog.EventEntryAdded:
		// The browser ends requests when an interface of the machine comes or goes, as in other tests; pages ask again.
		elsewhere := strings.Contains(e.Entry.Text, "net::ERR_NETWORK_CHANGED")
		if (e.Entry.Level == "error" || e.Entry.Level == "warning") && !elsewhere {
			p.complain(fmt.Sprintf("%s: %s %s", e.Entry.Source, e.Entry.Text, e.Entry.URL))
		}
	}
}

func (p *tab) complain(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = append(p.complaints, text)
}

// judge fails the test for complaints that it does not bear.
func (p *tab) judge() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.complaints {
		if p.bears == nil || !p.bears.MatchString(c) {
			p.Errorf("the page complains: %s", c)
		}
	}
}

// bear lets the page complain of what matches.
func (p *tab) bear(pattern string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bears = regexp.MustCompile(pattern)
}

func (p *tab) tellWhatIsShown() {
	text, err := chromedp.Run(p.ctx, chromedp.Evaluate[string]("document.body.innerText"))
	p.Logf("the page shows (%v):\n%s", err, text)
}

// open loads an address and waits until the page has a board.
func (p *tab) open(url string) {
	p.Helper()
	p.must(chromedp.Do(p.ctx, chromedp.Navigate(url)))
	p.until("the first board", "document.getElementById('look')?.dataset.state === 'good'")
}

// before has a script run in each page before its own.
func (p *tab) before(script string) {
	p.Helper()
	_, err := chromedp.Call(p.ctx, cdppage.AddScriptToEvaluateOnNewDocument,
		cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script})
	p.must(err)
}

// prefer sets a preference that style sheets ask for.
func (p *tab) prefer(feature, value string) {
	p.Helper()
	_, err := chromedp.Call(p.ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: feature, Value: value}},
	})
	p.must(err)
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

// until waits until a condition in the page holds. The page cannot be asked to wait itself: its policy forbids the
// functions that a driver would make there. A page that is about to give way to the next answers with an error, which
// counts as no.
func (p *tab) until(what, condition string) {
	p.Helper()
	var last error
	defer func() {
		if last != nil {
			p.Logf("the last answer: %v", last)
		}
	}()
	poll(p.T, what+": "+condition, func() bool {
		var holds bool
		holds, last = chromedp.Run(p.ctx, chromedp.Evaluate[bool]("Boolean("+condition+")"))
		return last == nil && holds
	})
}

// poll waits until a condition holds.
func poll(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatalf("waited %v for %s", patience, what)
		}
	}
}

// shows waits until an element that is seen has a part in its text.
func (p *tab) shows(selector, part string) {
	p.Helper()
	p.until(fmt.Sprintf("%q in %s", part, selector),
		fmt.Sprintf("[...document.querySelectorAll(%q)]"+
			".some((e) => e.checkVisibility() && e.innerText.includes(%q))", selector, part))
}

// lacks waits until no such element contains the part.
func (p *tab) lacks(selector, part string) {
	p.Helper()
	p.until(fmt.Sprintf("no %q in %s", part, selector),
		fmt.Sprintf("![...document.querySelectorAll(%q)]"+
			".some((e) => e.checkVisibility() && e.innerText.includes(%q))", selector, part))
}

func (p *tab) click(selector string) {
	p.Helper()
	p.must(chromedp.Do(p.ctx, chromedp.Click(chromedp.CSS(selector))))
}

// press types keys for whatever has the focus. As with real keys, a key that the page takes for itself writes no
// character: chromedp.KeyEvent would write it all the same.
func (p *tab) press(keys string) {
	p.Helper()
	for _, r := range keys {
		events := kb.Encode(r)
		down, up := *events[0], *events[len(events)-1]
		if len(events) == 3 { // with a character between the two
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		for _, e := range []input.DispatchKeyEventParams{down, up} {
			_, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, e)
			p.must(err)
		}
	}
}
