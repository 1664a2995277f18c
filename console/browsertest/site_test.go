package browsertest

import (
	"bytes"
	"context"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/internal/browser"
	"github.com/interlock-go/interlock/memlock"
)

// site is a store of locks in memory, and a console that looks at it behind a server whose address stays.
type site struct {
	*testing.T
	store  *memlock.Driver
	faults *faulty.Control // of what the console asks
	client *interlock.Client
	opts   console.Options
	addr   string

	console *console.Console
	server  *http.Server
	streams atomic.Int32 // connections that wait for news
	served  sync.WaitGroup
	audit   bytes.Buffer // read it after stop
}

// newSite starts a site with those options; what they lack that tests need is filled in.
func newSite(t *testing.T, opts console.Options) *site {
	t.Helper()
	store := memlock.New(nil)
	return newSiteOver(t, store, store.Peer(), opts)
}

// newSiteOver starts a site whose console looks by another driver of the store.
func newSiteOver(t *testing.T, store *memlock.Driver, looks driver.Driver, opts console.Options) *site {
	t.Helper()
	s := &site{T: t, store: store, opts: opts, addr: "127.0.0.1:0"}
	d, faults := faulty.Wrap(looks, 1)
	s.faults = faults
	c, err := interlock.New(d, &interlock.Options{ClientName: "console"})
	s.must(err)
	s.client = c
	if s.opts.Interval == 0 {
		s.opts.Interval = 50 * time.Millisecond
	}
	if s.opts.URL == "" {
		s.opts.URL = "mem://test"
	}
	s.opts.Audit = &s.audit
	s.opts.Logger = slog.New(slog.DiscardHandler)
	t.Cleanup(func() {
		s.stop()
		for _, close := range []func() error{c.Close, d.Close, s.store.Close} {
			if err := close(); err != nil {
				t.Error(err)
			}
		}
	})
	s.start()
	return s
}

func (s *site) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

// start opens the console, again at the address that it had.
func (s *site) start() {
	s.Helper()
	c, err := console.New(s.client, &s.opts)
	s.must(err)
	var lc net.ListenConfig
	listener, err := lc.Listen(s.Context(), "tcp", s.addr)
	s.must(err)
	s.addr = listener.Addr().String()
	server := &http.Server{Handler: s.counting(c), ReadHeaderTimeout: browser.Patience}
	s.console, s.server = c, server
	s.served.Go(func() {
		if err := server.Serve(listener); !errors.Is(err, http.ErrServerClosed) {
			s.Errorf("serve: %v", err)
		}
	})
}

// counting counts the streams of events that are open.
func (s *site) counting(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/api/events") {
			s.streams.Add(1)
			defer s.streams.Add(-1)
		}
		next.ServeHTTP(w, r)
	})
}

// stop ends the console with all its connections, as if its process had died.
func (s *site) stop() {
	s.Helper()
	if s.server == nil {
		return
	}
	s.console.Close()
	if err := s.server.Close(); err != nil {
		s.Error(err)
	}
	s.served.Wait()
	s.server = nil
}

// url is the address of the page with that fragment.
func (s *site) url(fragment string) string { return "http://" + s.addr + "/?lang=en" + fragment }

// newClient returns another client of the store.
func (s *site) newClient(name string) *interlock.Client {
	s.Helper()
	d := s.store.Peer()
	c, err := interlock.New(d, &interlock.Options{ClientName: name})
	s.must(err)
	s.Cleanup(func() {
		if err := errors.Join(c.Close(), d.Close()); err != nil {
			s.Error(err)
		}
	})
	return c
}

// hold takes a mutex.
func hold(ctx context.Context, t *testing.T, c *interlock.Client, name, label string) *interlock.Lease {
	t.Helper()
	l, err := c.Mutex(name, &interlock.LockOptions{Label: label}).Lock(ctx)
	if err != nil {
		t.Fatal(err)
	}
	return l
}

// waitFor waits for a mutex until the test ends, or until it is granted.
func waitFor(ctx context.Context, t *testing.T, c *interlock.Client, name string) {
	t.Helper()
	ctx, cancel := context.WithCancel(ctx)
	var waits sync.WaitGroup
	waits.Go(func() {
		l, err := c.Mutex(name, nil).Lock(ctx)
		if err == nil {
			_ = l.Unlock(context.WithoutCancel(ctx)) // may have been lost by now
		}
	})
	t.Cleanup(func() {
		cancel()
		waits.Wait()
	})
}

// release gives a hold back.
func release(t *testing.T, l *interlock.Lease) {
	t.Helper()
	if err := l.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
}
