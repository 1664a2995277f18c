package console_test

import (
	"net/http"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/console"
)

// Somebody may point a name of his at this machine, so that the browser takes the console for his own site.
func TestGuard_AnswersUnderItsOwnNamesOnly(t *testing.T) {
	w := newWorld(t, &console.Options{Hosts: []string{"Ops.example.com"}})
	for host, want := range map[string]int{
		"localhost:7070": 200, "LOCALHOST": 200, "a.localhost:1": 200, "127.0.0.1:7070": 200, "[::1]:7070": 200,
		"[::1]":       200,
		"192.168.1.5": 200, "ops.example.com:443": 200, "ops.example.com.": 200,
		"evil.example": 421, "127.0.0.1.evil.example": 421, "localhost.evil.example:7070": 421, "evil-localhost": 421,
		"xops.example.com": 421, "1.2.3": 421,
	} {
		for _, path := range []string{"/", "/api/board", "/static/index.html", "/login"} {
			if got := w.get(path, "Host", host).StatusCode; (got == http.StatusMisdirectedRequest) != (want == 421) {
				t.Errorf("%s of %s: %d", path, host, got)
			}
		}
	}
	everywhere := newWorld(t, &console.Options{Hosts: []string{"*"}})
	everywhere.get("/api/board", "Host", "whatever").want(t, http.StatusOK, `"locks":[]`)
}

func TestGuard_RefusesWhatOtherSitesSend(t *testing.T) {
	w := newWorld(t, &console.Options{AllowBreak: true})
	l := w.lock("a")
	body := breakBody("a", l.Token(), "a")
	for name, headers := range map[string][]string{
		"another site":           {"Sec-Fetch-Site", "cross-site"},
		"another port":           {"Sec-Fetch-Site", "same-site"},
		"another origin":         {"Origin", "https://evil.example"},
		"an origin of no site":   {"Origin", "null"},
		"another port as origin": {"Origin", "http://127.0.0.1:1"},
	} {
		headers = append(headers, "Content-Type", "application/json")
		w.do(w.request(http.MethodPost, "/api/break", body, headers...)).want(t, http.StatusForbidden, "another site")
		if l.Err() != nil {
			t.Fatalf("%s has ended the hold: %v", name, l.Err())
		}
	}
	for _, site := range []string{"cross-site", "same-site"} {
		for _, path := range []string{"/api/doctor", "/api/board", "/api/events", "/api/lock?kind=mutex&name=a"} {
			w.get(path, "Sec-Fetch-Site", site).want(t, http.StatusForbidden, "another site")
		}
	}
	w.get("/api/board", "Sec-Fetch-Site", "same-origin").want(t, http.StatusOK, "mutex/a")
	w.get("/", "Sec-Fetch-Site", "cross-site").want(t, http.StatusOK, "<html") // a link
	// A form of another site cannot send JSON, and what it can send is not taken for it.
	for _, kind := range []string{
		"text/plain", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x", "",
	} {
		w.do(w.request(http.MethodPost, "/api/break", body, "Content-Type", kind)).
			want(t, http.StatusUnsupportedMediaType, "application/json")
	}
	w.get("/api/break").want(t, http.StatusMethodNotAllowed, "")
	if l.Err() != nil {
		t.Errorf("the hold has ended: %v", l.Err())
	}
}

func TestGuard_LetsThePageRunItsOwnScriptsOnly(t *testing.T) {
	w := newWorld(t, nil)
	for _, path := range []string{"/", "/static/index.html", "/api/board", "/nothing"} {
		h := w.get(path).Header
		want := "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
			"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"
		if got := h.Get("Content-Security-Policy"); got != want {
			t.Errorf("%s: %s", path, got)
		}
		if h.Get("X-Content-Type-Options") != "nosniff" || h.Get("Referrer-Policy") != "same-origin" {
			t.Errorf("%s: %v", path, h)
		}
	}
	if c := w.get("/api/board").Header.Get("Cache-Control"); c != "no-store" {
		t.Errorf("locks may be cached: %s", c)
	}
}

func TestFiles_AreSentOnceForEachVersion(t *testing.T) {
	w := newWorld(t, nil)
	first := w.get("/").want(t, http.StatusOK, "<html")
	tag := first.Header.Get("ETag")
	if len(tag) < 20 || first.Header.Get("Content-Type") != "text/html; charset=utf-8" {
		t.Errorf("%v", first.Header)
	}
	again := w.get("/static/index.html", "If-None-Match", tag)
	if again.want(t, http.StatusNotModified, "").body != "" {
		t.Error(again.body)
	}
	for _, path := range []string{
		"/static/nothing.js", "/static/", "/static/../console.go", "/static/%2e%2e%2fpage.go", "/x",
	} {
		if got := w.get(path); got.StatusCode == http.StatusOK || strings.Contains(got.body, "package") {
			t.Errorf("%s: %d", path, got.StatusCode)
		}
	}
}
