package console

import (
	"crypto/rand"
	"crypto/sha256"
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
