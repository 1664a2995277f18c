package browser

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/cdproto/input"
	cdppage "github.com/chromedp/cdproto/page"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// Go loads an address.
func (p *Tab) Go(url string) {
	p.Helper()
	p.do(chromedp.Navigate(url))
}

// do carries out an action.
func (p *Tab) do(action chromedp.Action[chromedp.Void]) {
	p.Helper()
	p.Must(p.call(func(ctx context.Context) error { return chromedp.Do(ctx, action) }))
}

// Before has a script run in each page before its own.
func (p *Tab) Before(script string) {
	p.Helper()
	p.Must(p.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, cdppage.AddScriptToEvaluateOnNewDocument,
			cdppage.AddScriptToEvaluateOnNewDocumentParams{Source: script})
		return err
	}))
}

// Prefer sets a preference that style sheets ask for.
func (p *Tab) Prefer(feature, value string) {
	p.Helper()
	p.emulate(emulation.SetEmulatedMediaParams{Features: []*emulation.MediaFeature{{Name: feature, Value: value}}})
}

// Media has the page laid out for print, or for the screen again.
func (p *Tab) Media(kind string) {
	p.Helper()
	p.emulate(emulation.SetEmulatedMediaParams{Media: kind})
}

func (p *Tab) emulate(media emulation.SetEmulatedMediaParams) {
	p.Helper()
	p.Must(p.call(func(ctx context.Context) error {
		_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, media)
		return err
	}))
}

// Eval returns the value of an expression in the page.
func Eval[T any](p *Tab, expression string) T {
	p.Helper()
	v, err := evaluate[T](p, expression)
	if err != nil {
		p.Fatalf("%s: %v", expression, err)
	}
	return v
}

func evaluate[T any](p *Tab, expression string) (v T, err error) {
	err = p.call(func(ctx context.Context) (err error) {
		v, err = chromedp.Run(ctx, chromedp.Evaluate[T](expression))
		return err
	})
	return v, err
}

// Until waits until a condition in the page holds. The page cannot be asked to wait itself: its policy forbids the
// functions that a driver would make there. A page that is about to give way to the next answers with an error, which
// counts as no.
func (p *Tab) Until(what, condition string) {
	p.Helper()
	var last error
	defer func() {
		if last != nil {
			p.Logf("the last answer: %v", last)
		}
	}()
	Poll(p.T, what+": "+condition, func() bool {
		var holds bool
		holds, last = evaluate[bool](p, "Boolean("+condition+")")
		return last == nil && holds
	})
}

// Shows waits until an element that is seen has a part in its text.
func (p *Tab) Shows(selector, part string) {
	p.Helper()
	p.Until(fmt.Sprintf("%q in %s", part, selector),
		fmt.Sprintf("[...document.querySelectorAll(%q)]"+
			".some((e) => e.checkVisibility() && e.innerText.includes(%q))", selector, part))
}

// Lacks waits until no such element contains the part.
func (p *Tab) Lacks(selector, part string) {
	p.Helper()
	p.Until(fmt.Sprintf("no %q in %s", part, selector),
		fmt.Sprintf("![...document.querySelectorAll(%q)]"+
			".some((e) => e.checkVisibility() && e.innerText.includes(%q))", selector, part))
}

// Shown returns the texts of the elements that are seen.
func (p *Tab) Shown(selector string) []string {
	p.Helper()
	return Eval[[]string](p, fmt.Sprintf("[...document.querySelectorAll(%q)]"+
		".filter((e) => e.checkVisibility({visibilityProperty: true})).map((e) => e.innerText.trim())", selector))
}

// Wants fails the test if the texts of the elements that are seen are others.
func (p *Tab) Wants(selector string, texts ...string) {
	p.Helper()
	if got := p.Shown(selector); !slices.Equal(got, texts) {
		p.Errorf("%s shows %q, want %q", selector, got, texts)
	}
}

// Click clicks an element.
func (p *Tab) Click(selector string) {
	p.Helper()
	p.do(chromedp.Click(chromedp.CSS(selector)))
}

// Press types keys for whatever has the focus. As with real keys, a key that the page takes for itself writes no
// character: chromedp.KeyEvent would write it all the same.
func (p *Tab) Press(keys ...string) {
	p.Helper()
	for _, r := range strings.Join(keys, "") {
		events := kb.Encode(r)
		down, up := *events[0], *events[len(events)-1]
		if len(events) == 3 { // with a character between the two
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		for _, e := range []input.DispatchKeyEventParams{down, up} {
			p.Must(p.call(func(ctx context.Context) error {
				_, err := chromedp.Call(ctx, input.DispatchKeyEvent, e)
				return err
			}))
		}
	}
}
