package console

import (
	"crypto/rand"
	"crypto/sha256"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/webguard"
)

const (
	// sessionTime is how long a visitor is let in after a login.
	sessionTime = 12 * time.Hour
	// maxSessions bounds what logins can use up; the oldest goes.
	maxSessions = 1000
)

// gate keeps the sessions of visitors that have logged in with a token. Who else is let in is package webguard's to
// say.
type gate struct {
	guard *webguard.Guard

	mu       sync.Mutex // guards sessions
	sessions map[digest]session
}

// session is a login. The cookie has a secret of its own, not the token.
type session struct {
	name string
	ends time.Time
}

// digest is what sessions are found by: looking one up tells nothing about the secrets that there are.
type digest [sha256.Size]byte

func digestOf(secret string) digest { return sha256.Sum256([]byte(secret)) }

func newGate(o *Options) (*gate, error) {
	g := &gate{sessions: make(map[digest]session)}
	var err error
	g.guard, err = webguard.New(&webguard.Options{
		Tokens: o.Tokens, Hosts: o.Hosts, Session: g.sessionOf, Refuse: refuseVisitor,
		// The login needs the page's style.
		Public: func(r *http.Request) bool {
			return strings.HasPrefix(r.URL.Path, "/static/") || r.URL.Path == "/login" || r.URL.Path == "/logout"
		},
		// Links to the page may stand anywhere; what it asks for is no page.
		Linked: func(r *http.Request) bool { return !strings.HasPrefix(r.URL.Path, "/api/") },
	})
	if err != nil {
		return nil, err
	}
	return g, nil
}

// refuseVisitor answers who is not let in: a browser that asks for the page gets the login.
func refuseVisitor(w http.ResponseWriter, r *http.Request, why *webguard.Refusal) {
	if why.Reason == webguard.TokenNeeded && r.URL.Path == "/" {
		// Relative, because the console may be below any path.
		w.Header().Set("Location", "login")
		w.WriteHeader(http.StatusSeeOther)
		return
	}
	hint := why.Hint
	if why.Reason == webguard.TokenNeeded {
		hint = "log in, or " + hint
	}
	refuse(w, why.Status, why.Detail, hint)
}

// stays reports whether a visitor who was let in may stay. A session can be over by now; a token that came with the
// request is good as long as the Console.
func (g *gate) stays(r *http.Request) bool { return g.guard.Known(r) || g.sessionOf(r) != "" }

// sessionOf names the visitor of a request's session, or returns "".
func (g *gate) sessionOf(r *http.Request) string {
	cookie, err := r.Cookie(cookieName(r))
	if err != nil {
		return ""
	}
	return g.session(cookie.Value)
}

// open begins a session and returns its secret.
func (g *gate) open(name string) string {
	secret := rand.Text()
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	var oldest digest
	for key, s := range g.sessions {
		if !s.ends.After(now) {
			delete(g.sessions, key)
		} else if first, ok := g.sessions[oldest]; !ok || s.ends.Before(first.ends) {
			oldest = key
		}
	}
	if len(g.sessions) >= maxSessions {
		delete(g.sessions, oldest)
	}
	g.sessions[digestOf(secret)] = session{name, now.Add(sessionTime)}
	return secret
}

// session names whose session it is.
func (g *gate) session(secret string) string {
	g.mu.Lock()
	defer g.mu.Unlock()
	s, ok := g.sessions[digestOf(secret)]
	if !ok || !s.ends.After(time.Now()) {
		return ""
	}
	return s.name
}

// end ends a session.
func (g *gate) end(secret string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.sessions, digestOf(secret))
}

// loginPage has places for the language, the title, a message, the label of the field and that of the button.
const loginPage = `<!doctype html>
<html lang="%s">
<head>
  <meta charset="utf-8">
  <meta name="viewport" content="width=device-width, initial-scale=1">
  <meta name="color-scheme" content="light dark">
  <title>%s</title>
  <link rel="stylesheet" href="static/style.css">
</head>
<body class="login">
  <main class="card">
    <h1>%[2]s</h1>
    <form method="post" action="login">
      <p role="alert">%[3]s</p>
      <label for="token">%[4]s</label>
      <input id="token" name="token" type="password" autocomplete="current-password" required autofocus>
      <button class="button" type="submit">%[5]s</button>
    </form>
  </main>
</body>
</html>
`

// loginWords are the texts of the login in one language.
type loginWords struct{ lang, title, field, button, wrong, wait string }

var (
	english = loginWords{
		"en", "interlock console", "Token", "Log in", "This token is not known.",
		"Too many wrong tokens. Try again in %d s.",
	}
	chinese = loginWords{
		"zh-CN", "interlock 控制台", "令牌", "登录", "令牌不正确。", "错误的令牌过多，请在 %d 秒后重试。",
	}
)

// wordsFor chooses the language: ?lang= if it is given, otherwise the first that the browser wants.
func wordsFor(r *http.Request) *loginWords {
	wanted := r.URL.Query().Get("lang")
	if wanted == "" {
		wanted, _, _ = strings.Cut(r.Header.Get("Accept-Language"), ",")
	}
	if strings.HasPrefix(strings.ToLower(strings.TrimSpace(wanted)), "zh") {
		return &chinese
	}
	return &english
}

// write sends the login with a message, which may be empty.
func (l *loginWords) write(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	fmt.Fprintf(w, loginPage, l.lang, l.title, message, l.field, l.button)
}

// form shows the login.
func (g *gate) form(w http.ResponseWriter, r *http.Request) {
	if g.stays(r) {
		home(w)
		return
	}
	wordsFor(r).write(w, http.StatusOK, "")
}

// login begins a session for a visitor that knows a token.
func (g *gate) login(w http.ResponseWriter, r *http.Request) {
	if !g.guard.NeedsToken() {
		home(w)
		return
	}
	r.Body = http.MaxBytesReader(w, r.Body, maxRequest)
	name, wait := g.guard.Try(r, strings.TrimSpace(r.PostFormValue("token")))
	words := wordsFor(r)
	switch {
	case wait > 0:
		seconds := int((wait + time.Second - 1) / time.Second)
		words.write(w, http.StatusTooManyRequests, fmt.Sprintf(words.wait, seconds))
	case name == "":
		words.write(w, http.StatusUnauthorized, words.wrong)
	default:
		cookie := g.cookie(r, g.open(name))
		cookie.MaxAge = int(sessionTime / time.Second)
		http.SetCookie(w, cookie)
		home(w)
	}
}

// logout ends the session.
func (g *gate) logout(w http.ResponseWriter, r *http.Request) {
	if cookie, err := r.Cookie(cookieName(r)); err == nil {
		g.end(cookie.Value)
	}
	cookie := g.cookie(r, "")
	cookie.MaxAge = -1
	http.SetCookie(w, cookie)
	w.Header().Set("Location", "login")
	w.WriteHeader(http.StatusSeeOther)
}

// cookie is a session's. No script sees it, no other site's request carries it, and over TLS it never leaves TLS.
func (g *gate) cookie(r *http.Request, secret string) *http.Cookie {
	return &http.Cookie{
		Name: cookieName(r), Value: secret, Path: "/", HttpOnly: true, Secure: r.TLS != nil,
		SameSite: http.SameSiteStrictMode,
	}
}

// cookieName has the port in it: browsers send cookies to every port of a host, and a host may have several consoles.
func cookieName(r *http.Request) string {
	_, port, err := net.SplitHostPort(r.Host)
	if err != nil || strings.Trim(port, "0123456789") != "" {
		port = ""
	}
	return "interlock-console" + port
}

// home leads to the page, wherever the console is mounted.
func home(w http.ResponseWriter) {
	w.Header().Set("Location", "./")
	w.WriteHeader(http.StatusSeeOther)
}
