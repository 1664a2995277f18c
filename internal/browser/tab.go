package browser

import (
	"context"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/cdproto/cdp"
	cdplog "github.com/chromedp/cdproto/log"
	"github.com/chromedp/cdproto/runtime"
	"github.com/chromedp/chromedp"
)

// Tab is a page in the browser. What the page complains of fails its test.
type Tab struct {
	*testing.T
	Ctx context.Context //nolint:containedctx // chromedp keeps the tab in it

	patience time.Duration // bounds one call, see [Tab.call]

	mu         sync.Mutex // guards what follows, which the browser's events write
	complaints []string
	bears      *regexp.Regexp // complaints that the test makes happen, nil for none
}

// New opens an empty tab in a profile of its own, which closes with the test.
func New(t *testing.T, width, height int64) *Tab {
	t.Helper()
	p := &Tab{T: t, patience: Patience}
	ctx, cancel := chromedp.NewContext(start(t), chromedp.WithNewBrowserContext())
	p.Ctx = ctx
	t.Cleanup(func() {
		if t.Failed() {
			p.tellWhatIsShown()
		}
		cancel()
		p.judge()
	})
	p.Must(chromedp.Do(ctx, chromedp.EmulateViewport(width, height)))
	p.Must(chromedp.Listen(ctx, p.heard))
	_, err := chromedp.Call(ctx, runtime.Enable, cdp.Empty{})
	p.Must(err)
	_, err = chromedp.Call(ctx, cdplog.Enable, cdp.Empty{}) // violations of the content security policy are told here
	p.Must(err)
	return p
}

// Must fails the test for an error.
func (p *Tab) Must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// call asks the browser for something, for so long at most: a page whose script does not end answers nothing.
func (p *Tab) call(f func(ctx context.Context) error) error {
	ctx, cancel := context.WithTimeout(p.Ctx, p.patience)
	defer cancel()
	return f(ctx)
}

// heard takes in what the page writes to its console, and what the browser writes about the page.
func (p *Tab) heard(event any) {
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

func (p *Tab) complain(text string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.complaints = append(p.complaints, text)
}

// judge fails the test for complaints that it does not bear.
func (p *Tab) judge() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.complaints {
		if p.bears == nil || !p.bears.MatchString(c) {
			p.Errorf("the page complains: %s", c)
		}
	}
}

// Bear lets the page complain of what matches.
func (p *Tab) Bear(pattern string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.bears = regexp.MustCompile(pattern)
}

// Complaints returns what the page has complained of so far.
func (p *Tab) Complaints() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return append([]string(nil), p.complaints...)
}

func (p *Tab) tellWhatIsShown() {
	text, err := evaluate[string](p, "document.body.innerText")
	p.Logf("the page shows (%v):\n%s", err, text)
}
