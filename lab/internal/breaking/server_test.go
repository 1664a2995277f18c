package breaking

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/browser"
	"github.com/interlock-go/interlock/lab/internal/play"
	"github.com/interlock-go/interlock/lab/internal/story"
)

func TestMain(m *testing.M) {
	play.ServeIfProcess()
	browser.Main(m)
}

// site is the page, served.
type site struct {
	*testing.T
	page *Server
	url  string // with the secret
}

func newSite(t *testing.T) *site {
	t.Helper()
	page := New(story.EN)
	web := httptest.NewServer(page)
	t.Cleanup(web.Close)
	return &site{t, page, web.URL + page.Path()}
}

// do sends a request with headers, given as names and values, and returns the status and the body.
func (s *site) do(method, url, body string, headers ...string) (int, string) {
	s.Helper()
	r, err := http.NewRequestWithContext(s.Context(), method, url, strings.NewReader(body))
	if err != nil {
		s.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if r.Header.Set(headers[i], headers[i+1]); headers[i] == "Host" {
			r.Host = headers[i+1]
		}
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil {
		s.Fatal(err)
	}
	return answer.StatusCode, string(text)
}

// wants sends a request and fails the test unless the answer is that.
func (s *site) wants(status int, part, method, url, body string, headers ...string) {
	s.Helper()
	got, text := s.do(method, url, body, headers...)
	if got != status || !strings.Contains(text, part) {
		s.Errorf("%s %s %v: %d %s, want %d %q", method, url, headers, got, text, status, part)
	}
}

var jsonType = []string{"Content-Type", "application/json"}

func TestPage_IsForWhoKnowsItsPath_OnThisMachine(t *testing.T) {
	s := newSite(t)
	s.wants(http.StatusOK, "Break it yourself", http.MethodGet, s.url, "")
	s.wants(http.StatusOK, "use strict", http.MethodGet, s.url+"break.js", "")
	s.wants(http.StatusOK, "palette", http.MethodGet, s.url+"break.css", "")
	root := strings.TrimSuffix(s.url, s.page.Path())
	s.wants(http.StatusNotFound, "", http.MethodGet, root+"/", "")
	s.wants(http.StatusNotFound, "", http.MethodPost, root+"/break", "{}", jsonType...)
	s.wants(http.StatusNotFound, "", http.MethodGet, s.url+"told/1", "")
	for _, host := range []string{"evil.example", "localhost.evil.example", "192.168.1.5"} {
		s.wants(http.StatusMisdirectedRequest, host, http.MethodGet, s.url, "", "Host", host)
	}
	s.wants(http.StatusOK, "", http.MethodGet, s.url, "", "Host", "localhost:1")
}

func TestPage_RefusesWhatOtherSitesSend(t *testing.T) {
	s := newSite(t)
	for _, headers := range [][]string{
		{"Sec-Fetch-Site", "cross-site"},
		{"Sec-Fetch-Site", "same-site"},
		{"Origin", "https://evil.example"},
		{"Origin", "null"},
	} {
		headers = append(headers, jsonType...)
		s.wants(http.StatusForbidden, "another site", http.MethodPost, s.url+"break", "{}", headers...)
	}
	s.wants(http.StatusUnsupportedMediaType, "", http.MethodPost, s.url+"break", "{}", "Content-Type", "text/plain")
}

func TestBreak_RefusesWhatItCannotPlay(t *testing.T) {
	s := newSite(t)
	for body, says := range map[string]string{
		`{`:            "unexpected",
		`{"id":"D99"}`: `no course "D99"`,
		`{"id":"D3","faults":[{"who":0,"nth":99,"action":"dies"}]}`:        "no fault can follow",
		`{"id":"interlock","faults":[{"who":0,"nth":1,"action":"loses"}]}`: `no fault "loses"`,
	} {
		s.wants(http.StatusBadRequest, says, http.MethodPost, s.url+"break", body, jsonType...)
	}
	s.page.busy.Lock()
	defer s.page.busy.Unlock()
	s.wants(http.StatusConflict, "another course", http.MethodPost, s.url+"break", `{"id":"D3"}`, jsonType...)
}

func TestBreak_PlaysACourse_AndShowsIt(t *testing.T) {
	s := newSite(t)
	status, text := s.do(http.MethodPost, s.url+"break",
		`{"id":"D1","faults":[{"who":0,"nth":1,"action":"dies"}],"lang":"en"}`, jsonType...)
	var answer struct{ Told int }
	if err := json.Unmarshal([]byte(text), &answer); err != nil || status != http.StatusOK || answer.Told != 1 {
		t.Fatalf("%d %s: %v", status, text, err)
	}
	s.wants(http.StatusOK, "It never opens again.", http.MethodGet, s.url+"told/1", "")
}

func TestServer_KeepsTheNewestPages(t *testing.T) {
	s := New(story.EN)
	for range kept + 1 {
		s.keep([]byte("page"))
	}
	if len(s.pages) != kept || s.pages[1] != nil {
		t.Errorf("%d pages are kept", len(s.pages))
	}
}

func TestListen_TakesLoopbackAddressesOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:0", ":0", "192.168.1.5:0", "example.com:0", "127.0.0.1"} {
		if l, err := Listen(t.Context(), address); err == nil {
			_ = l.Close()
			t.Errorf("it listens on %s", address)
		}
	}
}

func TestServe_EndsWithItsContext(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	l, err := Listen(ctx, "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	ended := make(chan error)
	go func() { ended <- New(story.EN).Serve(ctx, l) }()
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}

func TestServe_WhoseListenerFails_WaitsForTheCourse(t *testing.T) {
	l, err := Listen(t.Context(), "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = l.Close() // so that it fails
	page := New(story.EN)
	page.busy.Lock() // by a course
	ended := make(chan error)
	go func() { ended <- page.Serve(t.Context(), l) }()
	select {
	case err := <-ended:
		t.Fatalf("it ends while a course runs: %v", err)
	case <-time.After(200 * time.Millisecond):
	}
	page.busy.Unlock()
	if err := <-ended; !errors.Is(err, net.ErrClosed) {
		t.Error(err)
	}
	if page.busy.TryLock() {
		t.Error("a course can begin after the end")
	}
}
