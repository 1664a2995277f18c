// Package browser opens pages in a real Chromium, for the tests of the console, of the lab and of the documents. It is
// a module of its own because it needs a driver of browsers, which no user of interlock should get.
//
// Chromium is found on PATH. Where it is missing the tests are skipped and say what to install, unless
// INTERLOCK_REQUIRE wants it ("chromium" or "all").
package browser

import (
	"context"
	"os"
	"os/exec"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/interlock-go/interlock/internal/servers"
)

// Patience bounds everything that must happen at some time, on a machine that does much else.
const Patience = 120 * time.Second

// chromium is one browser for all tests of a package: each has a profile of its own in it.
var chromium struct {
	once sync.Once
	ctx  context.Context //nolint:containedctx // chromedp keeps the browser in it
	end  context.CancelFunc
	err  error
}

// Main runs the tests of a package, ends the browser, and exits. TestMain calls it.
func Main(m *testing.M) {
	code := m.Run()
	if chromium.end != nil {
		chromium.end()
	}
	os.Exit(code)
}

// Path returns the path of Chromium, or skips or fails t.
func Path(t testing.TB) string {
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

// start returns the context of the browser, which outlives the test that is the first to want it.
func start(t testing.TB) context.Context {
	t.Helper()
	path := Path(t)
	chromium.once.Do(func() {
		options := append(chromedp.DefaultExecAllocatorOptions[:],
			chromedp.ExecPath(path), chromedp.NoSandbox, chromedp.DisableGPU,
			chromedp.Flag("disable-quic", true), chromedp.Flag("disable-component-update", true),
			chromedp.Flag("lang", "en-US"),
			chromedp.Flag("host-resolver-rules", "MAP *.example 127.0.0.1"), // a name is not trusted as loopback is
			chromedp.WSURLReadTimeout(Patience))
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

// Poll waits until a condition holds.
func Poll(t testing.TB, what string, holds func() bool) {
	t.Helper()
	deadline := time.NewTimer(Patience)
	defer deadline.Stop()
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for !holds() {
		select {
		case <-again.C:
		case <-deadline.C:
			t.Fatalf("waited %v for %s", Patience, what)
		}
	}
}
