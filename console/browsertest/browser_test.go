package browsertest

import (
	"flag"
	"testing"

	"github.com/interlock-go/interlock/internal/browser"
)

func TestMain(m *testing.M) {
	flag.Parse()
	browser.Main(m)
}

// tab is a page of the console.
type tab struct{ *browser.Tab }

// newTab opens an empty tab in a profile of its own.
func newTab(t *testing.T) *tab {
	t.Helper()
	return &tab{browser.New(t, 1280, 800)}
}

// open loads an address and waits until the page has a board.
func (p *tab) open(url string) {
	p.Helper()
	p.Go(url)
	p.Until("the first board", "document.getElementById('look')?.dataset.state === 'good'")
}

// eval returns the value of an expression in the page.
func eval[T any](p *tab, expression string) T {
	p.Helper()
	return browser.Eval[T](p.Tab, expression)
}
