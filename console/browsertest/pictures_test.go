package browsertest

import (
	"context"
	"flag"
	"fmt"
	"iter"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/interlock-go/interlock/console"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/internal/browser"
	"github.com/interlock-go/interlock/memlock"
)

var screenshots = flag.Bool("screenshots", false, "make the pictures of docs/console.md")

// largest is how many bytes a picture may have: it is in the repository for ever.
const largest = 150_000

// aged is a store whose locks look older than they are, so that a picture need not be waited for.
type aged struct {
	*memlock.Driver
	by map[string]time.Duration
}

func (a aged) Locks(ctx context.Context, prefix string) iter.Seq2[driver.LockInfo, error] {
	return func(yield func(driver.LockInfo, error) bool) {
		for l, err := range a.Driver.Locks(ctx, prefix) {
			l.Holders = slices.Clone(l.Holders)
			for i := range l.Holders {
				l.Holders[i].Since = l.Holders[i].Since.Add(-a.by[l.Name])
			}
			l.Waiters = slices.Clone(l.Waiters)
			for i := range l.Waiters {
				l.Waiters[i].Since = l.Waiters[i].Since.Add(-min(a.by[l.Name]/3, time.Minute))
			}
			if !yield(l, err) {
				return
			}
		}
	}
}

// stage plays a shop on a store: each of its requests has an owner and a client of its own.
type stage struct {
	*testing.T
	store *memlock.Driver
	waits sync.WaitGroup
	ids   int
}

func (s *stage) request(kind driver.Kind, name, owner, client string) *driver.Request {
	s.ids++
	return &driver.Request{
		Key: driver.Key{Kind: kind, Name: name}, ID: fmt.Sprintf("picture-%d", s.ids), Owner: owner, Client: client,
		Weight: 1, Tokens: 1, Lease: 30 * time.Second, Named: owner != "",
	}
}

func (s *stage) hold(r *driver.Request) {
	s.Helper()
	if _, err := s.store.Acquire(s.Context(), r); err != nil {
		s.Fatal(err)
	}
}

// wait makes a request that waits until the test ends, and returns when it is in the queue.
func (s *stage) wait(ctx context.Context, r *driver.Request) {
	s.Helper()
	queued := make(chan struct{})
	var once sync.Once
	r.Waiting = func(*driver.HeldError) { once.Do(func() { close(queued) }) }
	s.waits.Go(func() { _, _ = s.store.Acquire(ctx, r) }) // ends with the test
	select {
	case <-queued:
	case <-time.After(browser.Patience):
		s.Fatalf("%s does not wait for %s", r.Owner, r.Name)
	}
}

// play takes all locks of the pictures.
func (s *stage) play(ctx context.Context) {
	const mutex, sem, election, rw = driver.KindMutex, driver.KindSemaphore, driver.KindElection, driver.KindRWMutex
	s.hold(s.request(mutex, "account:4711", "transfer-81", "worker-2:4021"))
	s.hold(s.request(mutex, "account:4712", "transfer-82", "worker-5:991"))
	s.wait(ctx, s.request(mutex, "account:4711", "transfer-82", "worker-5:991"))
	s.wait(ctx, s.request(mutex, "account:4711", "nightly-report", "cron-1:77"))
	s.wait(ctx, s.request(mutex, "account:4712", "transfer-81", "worker-2:4021"))
	export := s.request(mutex, "invoices:2026-11", "export", "cron-1:77")
	export.Label, export.Lease = "all of November", 45*time.Second
	s.hold(export)
	for i, name := range []string{
		"cart:9f3c", "cart:a017", "cart:c5d2", "order:1001", "order:1002", "order:1003",
		"stock:4006381333931", "stock:9780134190440",
	} {
		r := s.request(mutex, name, "", fmt.Sprintf("shop-%d:%d", i%3+1, 310+i%3))
		r.Lease -= time.Duration(i*3%8) * time.Second
		s.hold(r)
	}
	for i := range 18 {
		r := s.request(sem, "payments", "", fmt.Sprintf("shop-%d:%d", i%3+1, 310+i%3))
		r.Mode, r.Limit = driver.Shared, 20
		s.hold(r)
	}
	for i, weight := range []int{3, 1, 1, 2} {
		r := s.request(sem, "image-resize", "", fmt.Sprintf("image-%d:%d", i+1, 40+i))
		r.Mode, r.Limit, r.Weight = driver.Shared, 4, weight
		if i < 2 {
			s.hold(r)
		} else {
			s.wait(ctx, r)
		}
	}
	for i, host := range []string{"10.0.3.7:8443", "10.0.3.8:8443", "10.0.3.9:8443"} {
		r := s.request(election, "scheduler", "", fmt.Sprintf("cron-%d:%d", i+1, 77+i))
		r.Label = host
		if i == 0 {
			s.hold(r)
		} else {
			s.wait(ctx, r)
		}
	}
	for i := range 3 {
		r := s.request(rw, "catalogue", "", fmt.Sprintf("web-%d:%d", i+1, 500+i))
		r.Mode = driver.Shared
		s.hold(r)
	}
	s.wait(ctx, s.request(rw, "catalogue", "reindex", "search-1:61"))
	s.hold(s.request(rw, "prices", "import", "cron-1:77"))
}

// Pictures are made again when the page has changed: go test -run Pictures . -screenshots. Without the flag it is only
// seen that the page shows what they are of.
func TestPictures_OfTheDocumentation(t *testing.T) {
	store := memlock.New(nil)
	looks := aged{store.Peer(), map[string]time.Duration{
		"account:4711": 13 * time.Second, "account:4712": 12 * time.Second, "invoices:2026-11": 185 * time.Minute,
		"scheduler": 26 * time.Hour, "catalogue": 4 * time.Second, "image-resize": 9 * time.Second,
		"prices": 72 * time.Second, "payments": 3 * time.Second,
	}}
	site := newSiteOver(t, store, looks, console.Options{AllowBreak: true, URL: "mem://shop"})
	ctx, end := context.WithCancel(t.Context())
	s := &stage{T: t, store: store}
	t.Cleanup(func() {
		end()
		s.waits.Wait()
	})
	s.play(ctx)
	p := newTab(t)
	p.Must(chromedp.Do(p.Ctx, chromedp.EmulateViewport(1240, 690)))

	p.open(site.url("#/locks/mutex/account:4711"))
	p.Shows("#detail .queue", "nightly-report")
	p.picture("locks.png", "body")
	p.Click("#detail [data-break]")
	p.Press("account:4711")
	p.Prefer("prefers-color-scheme", "dark")
	p.picture("break.png", "#detail")
	p.Press("\x1b")
	p.open(site.url("#/waits"))
	p.Shows(".cycles", "transfer-81")
	p.picture("waits.png", "body")
	p.Prefer("prefers-color-scheme", "light")
	p.open("http://" + site.addr + "/?lang=zh#/kinds")
	p.Shows(".card", "已用 18 / 20")
	p.picture("kinds.zh-CN.png", "body")
}

// picture writes what an element shows into the folder of the documentation, if that is wanted.
func (p *tab) picture(name, selector string) {
	p.Helper()
	if !*screenshots {
		return
	}
	eval[any](p, "document.activeElement.blur()")
	png, err := chromedp.Run(p.Ctx, chromedp.Screenshot(chromedp.CSS(selector)))
	p.Must(err)
	dir := filepath.Join("..", "..", "docs", "console")
	p.Must(os.MkdirAll(dir, 0o755))
	p.Must(os.WriteFile(filepath.Join(dir, name), png, 0o644))
	if len(png) > largest {
		p.Errorf("%s has %d bytes, more than %d", name, len(png), largest)
	}
}
