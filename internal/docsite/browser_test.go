package main

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp/kb"
	"github.com/interlock-go/interlock/internal/browser"
	"github.com/interlock-go/interlock/internal/longrun"
)

func TestMain(m *testing.M) { browser.Main(m) }

// searches holds once the script of a page runs: a key that is pressed before is nobody's.
const searches = "document.readyState === 'complete' && !document.getElementById('find').hidden"

// openSmall writes the small site and opens one of its pages from the folder.
func openSmall(t *testing.T, page string, width int64) *browser.Tab {
	t.Helper()
	folder := t.TempDir()
	if err := write(folder, buildSmall(t, small()).files); err != nil {
		t.Fatal(err)
	}
	p := browser.New(t, width, 800)
	p.Go(fileURL(folder, page))
	p.Until("the script", searches)
	return p
}

func fileURL(folder, page string) string {
	return "file://" + filepath.ToSlash(filepath.Join(folder, filepath.FromSlash(page)))
}

func TestBrowser_FindsAWordAndFollowsTheHitByKeys(t *testing.T) {
	p := openSmall(t, "docs/limits/redis.html", 1200)
	p.Press("/", "zebra")
	p.Until("one hit", "document.querySelectorAll('#hits a').length === 1")
	p.Wants("#hits mark", "zebra")
	p.Press(kb.ArrowDown, kb.Enter)
	p.Until("the section", "location.pathname.endsWith('/docs/locks.html') && location.hash === '#what-is-a-lock'")
	p.Until("the script", searches)

	p.Press("/", "一个持有者")
	p.Until("a Chinese hit", "document.querySelector('#hits a')?.lang === 'zh-CN'")
	p.Press(kb.Enter) // the first hit
	p.Until("the Chinese page", "location.pathname.endsWith('/docs/locks.zh-CN.html')")
	p.Until("the section", "document.getElementById(decodeURIComponent(location.hash.slice(1)))?.matches(':target')")
	p.Until("the script", searches)

	p.Press("/", "xyzzy")
	p.Until("what a screen reader says", "document.querySelector('#told').textContent === '没有找到'")
	p.Press(kb.Escape)
	p.Until("no hits", "document.querySelector('#hits').hidden")
}

func TestBrowser_TheNavigationOpensOnANarrowScreen(t *testing.T) {
	p := openSmall(t, "docs/limits/index.html", 360)
	const seen = "document.querySelector('nav a').checkVisibility()"
	p.Until("the text alone", "!"+seen)
	p.Until("no page wider than the screen", "document.documentElement.scrollWidth <= innerWidth")
	p.Click(".contents")
	p.Until("the navigation", seen)
	p.Press(kb.Escape)
	p.Until("the text alone", "!"+seen)
}

// TestBrowser_NoDocumentIsWiderThanAPhone: long tables and long lines of code scroll inside of the page. Only a long
// run opens every page.
func TestBrowser_NoDocumentIsWiderThanAPhone(t *testing.T) {
	s, err := build(os.DirFS("../.."), "https://example.com/source")
	if err != nil {
		t.Fatal(err)
	}
	folder := t.TempDir()
	if err := write(folder, s.files); err != nil {
		t.Fatal(err)
	}
	const phone = 390
	p := browser.New(t, phone, 844)
	for i := 0; i < len(s.names); i += longrun.Of(8, 1) {
		page := s.pages[s.names[i]].out
		p.Go(fileURL(folder, page))
		if wide := browser.Eval[int](p, "document.documentElement.scrollWidth"); wide > phone {
			t.Errorf("%s is %d pixels wide on a screen of %d", page, wide, phone)
		}
	}
}
