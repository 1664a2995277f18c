package webguard_test

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/webguard"
)

// guarded is a handler that answers with the visitor's name, behind a guard.
func guarded(t *testing.T, o *webguard.Options) webguard.Guarded {
	t.Helper()
	g, err := webguard.New(o)
	if err != nil {
		t.Fatal(err)
	}
	return g.Mount(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		fmt.Fprint(w, webguard.Visitor(r.Context()))
	}))
}

// ask sends a request to a handler. What differs from an ordinary one is in the pairs of headers.
func ask(t *testing.T, h http.Handler, method, path string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), method, "http://localhost"+path, strings.NewReader(""))
	for i := 0; i < len(headers); i += 2 {
		switch headers[i] {
		case "Host":
			r.Host = headers[i+1]
		case "From":
			r.RemoteAddr = headers[i+1]
		default:
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	w := httptest.NewRecorder()
	h.ServeHTTP(w, r)
	return w
}

func bearer(secret string) []string { return []string{"Authorization", "Bearer " + secret} }

func twoTokens() *webguard.Options {
	return &webguard.Options{Tokens: []webguard.Token{{"ann", annsToken}, {"bob", bobsToken}}}
}

func TestGuard_WithoutTokens_AnswersUnderNamesThatNobodyCanPointHere(t *testing.T) {
	h := guarded(t, &webguard.Options{Hosts: []string{"ops.example.com"}})
	for host, want := range map[string]int{
		"localhost:1": 200, "a.localhost": 200, "127.0.0.1:1": 200, "[::1]:1": 200, "OPS.example.com.": 200,
		"rebound.example:1": 421, "localhost.evil.example": 421, "127.0.0.1.evil.example": 421, "": 421,
	} {
		if got := ask(t, h, http.MethodGet, "/", "Host", host); got.Code != want {
			t.Errorf("%q: %d, want %d", host, got.Code, want)
		}
	}
	if got := ask(t, h, http.MethodGet, "/"); got.Body.String() != webguard.Local {
		t.Errorf("the visitor is %q", got.Body)
	}
}

// A page under a foreign name knows no token, and sends none. It sends the cookie of a session.
func TestGuard_WithTokens_ChecksNamesWhereBrowsersSendWhatLetsIn(t *testing.T) {
	foreign := append(bearer(annsToken), "Host", "states.example.com")
	o := twoTokens()
	if got := ask(t, guarded(t, o), http.MethodGet, "/", foreign...); got.Code != 200 || got.Body.String() != "ann" {
		t.Errorf("with a token in each request: %d %s", got.Code, got.Body)
	}
	o.Hosts = []string{"ops.example.com"}
	if got := ask(t, guarded(t, o), http.MethodGet, "/", foreign...); got.Code != http.StatusMisdirectedRequest {
		t.Errorf("with other names: %d", got.Code)
	}
	o.Hosts, o.Session = nil, func(*http.Request) string { return "" }
	if got := ask(t, guarded(t, o), http.MethodGet, "/", foreign...); got.Code != http.StatusMisdirectedRequest {
		t.Errorf("with sessions: %d", got.Code)
	}
}

func TestGuard_RefusesWhatOtherSitesSend_WhateverTheMethod(t *testing.T) {
	o := twoTokens()
	o.Linked = func(r *http.Request) bool { return r.URL.Path == "/page" }
	h := guarded(t, o)
	for _, method := range []string{"GET", "HEAD", "POST", "PUT", "DELETE", "LOCK", "UNLOCK", "OPTIONS"} {
		for _, path := range []string{"/page", "/data"} {
			for _, sent := range [][]string{
				{"Sec-Fetch-Site", "cross-site"},
				{"Sec-Fetch-Site", "same-site"},
				{"Origin", "https://evil.example"},
				{"Origin", "null"},
				{"Origin", "http://localhost:1"},
			} {
				want := http.StatusForbidden
				if path == "/page" && (method == "GET" || method == "HEAD") {
					want = http.StatusOK // a link
				}
				if got := ask(t, h, method, path, append(sent, bearer(annsToken)...)...); got.Code != want {
					t.Errorf("%s %s %v: %d, want %d", method, path, sent, got.Code, want)
				}
			}
			for _, sent := range [][]string{
				nil, {"Sec-Fetch-Site", "same-origin"}, {"Sec-Fetch-Site", "none"}, {"Origin", "http://localhost"},
			} {
				if got := ask(t, h, method, path, append(sent, bearer(annsToken)...)...); got.Code != 200 {
					t.Errorf("%s %s %v: %d", method, path, sent, got.Code)
				}
			}
		}
	}
}

func TestGuard_LetsInWhoKnowsAToken(t *testing.T) {
	o := twoTokens()
	o.Public = func(r *http.Request) bool { return r.URL.Path == "/public" }
	h := guarded(t, o)
	if got := ask(t, h, http.MethodGet, "/", bearer(bobsToken)...); got.Body.String() != "bob" {
		t.Errorf("the visitor is %q", got.Body)
	}
	for _, sent := range [][]string{nil, {"Authorization", bobsToken}, {"Authorization", "Basic Ym9iOng="}} {
		got := ask(t, h, http.MethodGet, "/", sent...)
		if got.Code != 401 || got.Header().Get("WWW-Authenticate") != `Bearer realm="interlock"` {
			t.Errorf("%v: %d %v", sent, got.Code, got.Header())
		}
	}
	if got := ask(t, h, http.MethodGet, "/public"); got.Code != 200 || got.Body.String() != "" {
		t.Errorf("what needs no token: %d %q", got.Code, got.Body)
	}
}

// As Terraform sends it. The name must be that of the token: otherwise an audit would have any name that one likes.
func TestGuard_Basic_WantsTheNameOfTheToken(t *testing.T) {
	o := twoTokens()
	o.Basic = true
	h := guarded(t, o)
	synctest.Test(t, func(t *testing.T) {
		for _, c := range []struct {
			user, secret string
			want         int
		}{
			{"ann", annsToken, 200}, {"bob", annsToken, 401}, {"", annsToken, 401}, {"ann", "", 401}, {"eve", "x", 401},
		} {
			r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "http://localhost/", http.NoBody)
			r.SetBasicAuth(c.user, c.secret)
			got := httptest.NewRecorder()
			h.ServeHTTP(got, r)
			if got.Code != c.want {
				t.Errorf("%s:%s: %d, want %d", c.user, c.secret, got.Code, c.want)
			}
		}
		if got := ask(t, h, http.MethodGet, "/", bearer(annsToken)...); got.Code != 401 {
			t.Errorf("a bearer: %d", got.Code)
		}
	})
}

// Whoever guesses from one address slows himself down, and keeps no other visitor of that address out.
func TestGuard_ARightTokenPasses_AndWrongOnesAreSlowed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := guarded(t, twoTokens())
		began, guesses := time.Now(), 0
		for ; time.Since(began) < time.Hour; guesses++ {
			if got := ask(t, h, "GET", "/", append(bearer("guess"), "From", "10.0.0.1:1")...); got.Code != 401 {
				t.Fatalf("guess %d: %d", guesses, got.Code)
			}
			now := time.Now()
			got := ask(t, h, "GET", "/", append(bearer(annsToken), "From", "10.0.0.1:2")...)
			if got.Code != 200 || time.Since(now) > 0 {
				t.Fatalf("a right token after %d wrong ones: %d after %v", guesses, got.Code, time.Since(now))
			}
		}
		if guesses > 3602 {
			t.Errorf("%d guesses in an hour", guesses)
		}
	})
}

func TestGuard_OfManyWrongTokensAtOnce_TurnsMostAway(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h, codes := guarded(t, twoTokens()), make(chan int, 100)
		for n := range cap(codes) {
			from := fmt.Sprintf("[2001:db8::%x]:1", n) // one network, so one visitor
			go func() { codes <- ask(t, h, "GET", "/", append(bearer("guess"), "From", from)...).Code }()
		}
		count := map[int]int{}
		for range cap(codes) {
			count[<-codes]++
		}
		if count[401] != 11 || count[429] != 89 {
			t.Errorf("answers by status: %v", count)
		}
	})
}

func TestHandler_WithoutAGuard_RefusesEverything(t *testing.T) {
	if got := ask(t, new(webguard.Handler), http.MethodGet, "/"); got.Code != http.StatusForbidden {
		t.Errorf("%d", got.Code)
	}
}
