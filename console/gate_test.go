package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/console"
	"github.com/interlock-go/interlock/webguard"
)

const (
	annsToken = "correct horse battery staple"
	bobsToken = "0123456789abcdef"
)

func withTokens() *console.Options {
	return &console.Options{AllowBreak: true, Tokens: []webguard.Token{
		{Name: "ann", Secret: annsToken}, {Name: "bob", Secret: bobsToken},
	}}
}

func (w *world) login(token string, headers ...string) reply {
	w.Helper()
	form := url.Values{"token": {token}}.Encode()
	return w.do(w.request(http.MethodPost, "/login", form, append(headers,
		"Content-Type", "application/x-www-form-urlencoded")...))
}

func TestGate_LetsInWhoKnowsAToken(t *testing.T) {
	audit := &lines{}
	o := withTokens()
	o.Audit = audit
	w := newWorld(t, o)
	l := w.lock("a")
	for _, path := range []string{
		"/api/board", "/api/events", "/api/lock", "/api/latch", "/api/doctor", "/api/audit", "/nothing",
	} {
		r := w.get(path).want(t, http.StatusUnauthorized, `"error":`)
		if r.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%s: %v", path, r.Header)
		}
	}
	w.breaks(breakBody("a", l.Token(), "a")).want(t, http.StatusUnauthorized, "token")
	if to := w.get("/").want(t, http.StatusSeeOther, "").Header.Get("Location"); to != "login" {
		t.Errorf("led to %q", to)
	}
	w.get("/static/index.html").want(t, http.StatusOK, "<html") // the login needs the page's style
	w.get("/api/board", "Authorization", "Bearer "+annsToken).want(t, http.StatusOK, "locks")
	w.breaks(breakBody("a", l.Token(), "a"), "Authorization", "Bearer "+bobsToken).want(t, http.StatusOK, "true")
	if e := audit.entries(t); len(e) != 2 || e[1].Who != "bob" {
		t.Errorf("%+v", e)
	}
}

func TestLogin_OpensASessionThatOnlyThisSiteCanUse(t *testing.T) {
	w := newWorld(t, withTokens())
	w.get("/login").want(t, http.StatusOK, `<form method="post" action="login">`)
	w.get("/login", "Accept-Language", "zh-CN,zh;q=0.9").want(t, http.StatusOK, "令牌")
	w.get("/login?lang=en", "Accept-Language", "zh").want(t, http.StatusOK, "Log in")
	r := w.login(annsToken).want(t, http.StatusSeeOther, "")
	cookies := r.Cookies()
	if len(cookies) != 1 || r.Header.Get("Location") != "./" {
		t.Fatalf("%v", r.Header)
	}
	c := cookies[0]
	if !c.HttpOnly || c.SameSite != http.SameSiteStrictMode || c.Secure || c.MaxAge <= 0 ||
		strings.Contains(c.Value, "correct") {
		t.Errorf("%+v", c)
	}
	cookie := c.Name + "=" + c.Value
	w.get("/api/board", "Cookie", cookie).want(t, http.StatusOK, "locks")
	w.get("/", "Cookie", cookie).want(t, http.StatusOK, `<form method="post" action="logout" id="logout">`)
	newWorld(t, nil).get("/").want(t, http.StatusOK, `id="logout" hidden`) // nobody logs in there
	w.get("/login", "Cookie", cookie).want(t, http.StatusSeeOther, "")
	w.get("/api/board", "Cookie", c.Name+"="+annsToken).want(t, http.StatusUnauthorized, "") // the token is no session
	w.do(w.request(http.MethodPost, "/logout", "", "Cookie", cookie, "Origin", "https://evil.example")).
		want(t, http.StatusForbidden, "")
	w.do(w.request(http.MethodPost, "/logout", "", "Cookie", cookie)).want(t, http.StatusSeeOther, "")
	w.get("/api/board", "Cookie", cookie).want(t, http.StatusUnauthorized, "")
	w.login(annsToken, "Origin", "https://evil.example").want(t, http.StatusForbidden, "")
}

func TestLogin_OverTLS_KeepsItsCookieThere(t *testing.T) {
	w := newWorld(t, withTokens())
	server := httptest.NewTLSServer(w.console)
	defer server.Close()
	resp, err := server.Client().Transport.RoundTrip(func() *http.Request {
		r := w.request(http.MethodPost, "/login", url.Values{"token": {annsToken}}.Encode(),
			"Content-Type", "application/x-www-form-urlencoded")
		r.URL.Scheme, r.URL.Host, r.Host = "https", server.Listener.Addr().String(), ""
		return r
	}())
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if c := resp.Cookies(); len(c) != 1 || !c[0].Secure {
		t.Errorf("%v", c)
	}
}

// try asks the console itself, because in a bubble there is no network.
func (w *world) try(token, from string) *http.Response {
	w.Helper()
	r := httptest.NewRequestWithContext(w.Context(), http.MethodGet, "http://localhost/api/board", nil)
	r.RemoteAddr = from
	r.Header.Set("Authorization", "Bearer "+token)
	got := httptest.NewRecorder()
	w.console.ServeHTTP(got, r)
	return got.Result()
}

// Whoever guesses from the address of a proxy, or of a network behind NAT, must not keep its other visitors out.
func TestGate_AfterWrongTokens_ARightOneFromTheSameAddressPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, withTokens())
		for range 100 {
			go w.try("guess", "10.0.0.1:1") // each ends with its answer
		}
		synctest.Wait()
		began := time.Now()
		if got := w.try(annsToken, "10.0.0.1:2"); got.StatusCode != http.StatusOK || time.Since(began) > 0 {
			t.Errorf("a right token after wrong ones of its address: %s after %v", got.Status, time.Since(began))
		}
		time.Sleep(time.Minute)
	})
}

// The login is the other way in.
func TestLogin_AfterWrongTokens_ARightOneFromTheSameAddressPasses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, withTokens())
		for range 100 {
			go w.try("guess", "192.0.2.1:1") // the address that httptest gives requests
		}
		synctest.Wait()
		began := time.Now()
		if c := w.session(); c.Value == "" || time.Since(began) > 0 {
			t.Errorf("the login gave %q after %v", c.Value, time.Since(began))
		}
		time.Sleep(time.Minute)
	})
}
