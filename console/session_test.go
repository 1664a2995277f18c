package console_test

import (
	"context"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"
)

func TestSession_EndsByItself(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, withTokens())
		cookie := w.session()
		status := func() int {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/api/board", nil)
			r.AddCookie(cookie)
			got := httptest.NewRecorder()
			w.console.ServeHTTP(got, r)
			return got.Code
		}
		time.Sleep(12*time.Hour - time.Second)
		if s := status(); s != http.StatusOK {
			t.Error(s)
		}
		time.Sleep(2 * time.Second)
		if s := status(); s != http.StatusUnauthorized {
			t.Error(s)
		}
	})
}

// A page that stays open must not go on to show locks after a logout.
func TestEvents_EndWithTheirSession(t *testing.T) {
	for name, c := range map[string]struct {
		stay   time.Duration
		logout bool
	}{"logout": {stay: time.Minute, logout: true}, "12 hours": {stay: 12 * time.Hour}} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				o := withTokens()
				o.Interval = 2 * time.Second // changes come oftener than anything else happens
				w := newWorld(t, o)
				cookie := w.session()
				began := time.Now()
				ended := w.follow(func(r *http.Request) {
					r.AddCookie(cookie)
					r.SetBasicAuth("proxy", "secret") // a proxy may add this, and it lets nobody in here
				})
				byToken := w.follow(func(r *http.Request) { r.Header.Set("Authorization", "Bearer "+annsToken) })
				time.Sleep(c.stay - time.Second)
				select {
				case <-ended:
					t.Errorf("it ended after %v", time.Since(began))
				default:
				}
				if c.logout {
					r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "http://localhost/logout", nil)
					r.AddCookie(cookie)
					w.console.ServeHTTP(httptest.NewRecorder(), r)
				}
				select {
				case <-ended:
				case <-time.After(7 * time.Second):
					t.Error("it outlives its session")
				}
				select {
				case <-byToken:
					t.Error("the stream of a program with a token ended")
				default:
				}
			})
		})
	}
}

// session logs in without a server, because in a bubble there is no network.
func (w *world) session() *http.Cookie {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), http.MethodPost, "http://localhost/login",
		strings.NewReader(url.Values{"token": {annsToken}}.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	got := httptest.NewRecorder()
	w.console.ServeHTTP(got, r)
	return got.Result().Cookies()[0]
}

// follow reads a stream of events until it ends, or the test does.
func (w *world) follow(as func(*http.Request)) (ended <-chan struct{}) {
	ctx, leave := context.WithCancel(w.Context())
	w.Cleanup(leave)
	r := eventsRequest(ctx)
	as(r)
	done := make(chan struct{})
	to := &reader{make(http.Header), make(chan string), ctx.Done()}
	go func() {
		defer close(done)
		w.console.ServeHTTP(to, r)
	}()
	go func() {
		for {
			select {
			case <-to.writes:
			case <-done:
				return
			}
		}
	}()
	return done
}
