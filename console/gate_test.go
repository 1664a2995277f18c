package console_test

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/console"
)

const (
	annsToken = "correct horse battery staple"
	bobsToken = "0123456789abcdef"
)

func withTokens() *console.Options {
	return &console.Options{AllowBreak: true, Tokens: []console.Token{{"ann", annsToken}, {"bob", bobsToken}}}
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

func TestGate_SlowsGuessingDown(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, withTokens())
		if got := w.try("guess", "10.0.0.1:1"); got.StatusCode != http.StatusUnauthorized {
			t.Error(got.Status)
		}
		got := w.try(annsToken, "10.0.0.1:2")
		if got.StatusCode != http.StatusTooManyRequests || got.Header.Get("Retry-After") != "1" {
			t.Errorf("a right token at once after a wrong one tells which it is: %s", got.Status)
		}
		if got := w.try(annsToken, "10.0.0.2:1"); got.StatusCode != http.StatusOK {
			t.Errorf("another address: %s", got.Status)
		}
		guesses := 0
		for end := time.Now().Add(time.Hour); time.Now().Before(end); time.Sleep(time.Second) {
			if w.try("guess", "10.0.0.1:1").StatusCode == http.StatusUnauthorized {
				guesses++
			}
		}
		if guesses > 130 {
			t.Errorf("%d guesses in an hour", guesses)
		}
		time.Sleep(time.Minute)
		if got := w.try(annsToken, "10.0.0.1:1"); got.StatusCode != http.StatusOK {
			t.Errorf("a right token after a minute: %s", got.Status)
		}
		w.try("guess", "[2001:db8::1]:1")
		if got := w.try(annsToken, "[2001:db8::2]:1"); got.StatusCode != http.StatusTooManyRequests {
			t.Errorf("another address of the same network: %s", got.Status)
		}
	})
}

func TestReadTokens_TakesOnlyAFileOfItsOwner(t *testing.T) {
	dir := t.TempDir()
	write := func(content string, mode os.FileMode) string {
		path := filepath.Join(dir, "tokens")
		_ = os.Remove(path)
		if err := os.WriteFile(path, []byte(content), mode); err != nil {
			t.Fatal(err)
		}
		if err := os.Chmod(path, mode); err != nil {
			t.Fatal(err)
		}
		return path
	}
	got, err := console.ReadTokens(write("# who may in\n\nann: "+annsToken+"\r\n bob:"+bobsToken+":x\n", 0o600))
	if err != nil || len(got) != 2 || got[0] != (console.Token{"ann", annsToken}) || got[1].Secret != bobsToken+":x" {
		t.Errorf("%v, %v", got, err)
	}
	for content, says := range map[string]string{
		"": "no token", "# nothing\n": "no token", "ann\n": "line 1 is not name:token",
		"ann:short\n":   "shorter than 16",
		":" + bobsToken: "no name", "a:" + annsToken + "\na:" + bobsToken: "occurs twice",
		"a:" + annsToken + "\nb:" + annsToken: "the token of another",
	} {
		if _, err := console.ReadTokens(write(content, 0o600)); err == nil || !strings.Contains(err.Error(), says) ||
			strings.Contains(err.Error(), bobsToken) {
			t.Errorf("%q: got %v, want %s", content, err, says)
		}
	}
	for _, mode := range []os.FileMode{0o644, 0o640, 0o660, 0o604, 0o602} {
		_, err := console.ReadTokens(write("ann:"+annsToken, mode))
		if err == nil || !strings.Contains(err.Error(), "chmod 600") {
			t.Errorf("mode %o: %v", mode, err)
		}
	}
	if _, err := console.ReadTokens(filepath.Join(dir, "none")); err == nil {
		t.Error("a file that is not there")
	}
}
