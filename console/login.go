package console

import (
	"fmt"
	"net"
	"net/http"
	"strings"
	"time"
)

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
