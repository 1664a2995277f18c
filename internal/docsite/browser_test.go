package main

import (
	"context"
	"fmt"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/input"
	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/interlock-go/interlock/internal/servers"
)

// patience bounds everything that must happen at some time, on a machine that does much else.
const patience = 60 * time.Second

// searches holds once the script of a page runs: a key that is pressed before is nobody's.
const searches = "!document.getElementById('find').hidden"

// Somebody opens the page from the folder, presses / and searches with the keyboard alone.
func TestBrowser_FindsAWordAndFollowsTheHit(t *testing.T) {
	folder := t.TempDir()
	s := buildSmall(t, small())
	if err := write(folder, s.files); err != nil {
		t.Fatal(err)
	}
	p := openPage(t, filepath.Join(folder, "docs", "limits", "redis.html"))
	p.press("/")
	p.press("zebra")
	p.until("document.querySelectorAll('#hits a').length === 1")
	p.until("document.querySelector('#hits mark').textContent === 'zebra'")
	p.press(kb.ArrowDown)
	p.press(kb.Enter)
	p.until("location.pathname.endsWith('/docs/locks.html') && location.hash === '#what-is-a-lock'")
	p.until(searches)

	p.press("/")
	p.press("持有者")
	p.until("document.querySelector('#hits a')?.lang === 'zh-CN'")
	p.press(kb.Enter) // the first hit
	p.until("location.pathname.endsWith('/docs/locks.zh-CN.html')")
	p.until("document.getElementById(decodeURIComponent(location.hash.slice(1)))?.matches(':target')")
	p.until(searches)

	p.press("/")
	p.press("xyzzy")
	p.until("document.querySelector('#told').textContent === '没有找到'")
	p.press(kb.Escape)
	p.until("document.querySelector('#hits').hidden")
}

// tab is a page in a real Chromium.
type tab struct {
	*testing.T
	ctx context.Context //nolint:containedctx // chromedp keeps the tab in it
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

// openPage opens a file in a browser of its own.
func openPage(t *testing.T, file string) *tab {
	t.Helper()
	options := append(chromedp.DefaultExecAllocatorOptions[:],
		chromedp.ExecPath(chromium(t)), chromedp.NoSandbox, chromedp.DisableGPU, chromedp.Flag("lang", "en-US"),
		chromedp.Flag("disable-component-update", true), chromedp.WSURLReadTimeout(patience))
	allocator, stop := chromedp.NewExecAllocator(context.WithoutCancel(t.Context()), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	p := &tab{t, ctx}
	p.must(chromedp.Do(ctx, chromedp.Navigate("file://"+filepath.ToSlash(file))))
	p.until(searches)
	return p
}

func (p *tab) must(err error) {
	p.Helper()
	if err != nil {
		p.Fatal(err)
	}
}

// until waits until a condition in the page holds. A page that gives way to the next has no answer.
func (p *tab) until(condition string) {
	p.Helper()
	deadline := time.NewTimer(patience)
	defer deadline.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for {
		held, err := chromedp.Run(p.ctx, chromedp.Evaluate[bool](fmt.Sprintf("Boolean(%s)", condition)))
		if err == nil && held {
			return
		}
		select {
		case <-again.C:
		case <-deadline.C:
			p.Fatalf("waited %v for %s: %v", patience, condition, err)
		}
	}
}

// press types keys for whatever has the focus. A key that the page takes for itself must write no character, as with
// real keys: so the character is part of the key that goes down, and no event of its own.
func (p *tab) press(keys string) {
	p.Helper()
	for _, r := range keys {
		events := kb.Encode(r)
		down, up := *events[0], *events[len(events)-1]
		if len(events) == 3 {
			down.Text, down.UnmodifiedText = events[1].Text, events[1].UnmodifiedText
		}
		for _, e := range []input.DispatchKeyEventParams{down, up} {
			_, err := chromedp.Call(p.ctx, input.DispatchKeyEvent, e)
			p.must(err)
		}
	}
}
