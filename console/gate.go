package console

import (
	"context"
	"crypto/rand"
	"net/http"
	"strings"
	"sync"
	"time"
)

const (
	// sessionTime is how long a visitor is let in after a login.
	sessionTime = 12 * time.Hour
	// maxSessions bounds what logins can use up; the oldest goes.
	maxSessions = 1000
)

// local is the name of a visitor where nobody needs a token.
const local = "local"

// gate lets visitors in that know a token, or have logged in with one.
type gate struct {
	tokens []tokenDigest // none: everybody is let in
	tries  tries

	mu       sync.Mutex // guards sessions
	sessions map[digest]session
}

type tokenDigest struct {
	name   string
	digest digest
}

// session is a login. The cookie has a secret of its own, not the token.
type session struct {
	name string
	ends time.Time
}

func newGate(o *Options) (*gate, error) {
	if err := checkTokens(o.Tokens); err != nil {
		return nil, err
	}
	g := &gate{sessions: make(map[digest]session), tries: tries{last: make(map[string]failure)}}
	for _, t := range o.Tokens {
		g.tokens = append(g.tokens, tokenDigest{t.Name, digestOf(t.Secret)})
	}
	return g, nil
}

// visitorKey is the key of the visitor's name in a request's context.
type visitorKey struct{}

// visitor names who was let in.
func visitor(ctx context.Context) string {
	name, _ := ctx.Value(visitorKey{}).(string)
	return name
}

// keep lets through who may in. Others get the login, or 401 if a program asks.
func (g *gate) keep(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name, wait := g.letIn(r)
		switch {
		case wait > 0:
			tooSoon(w, wait)
		case name != "":
			next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, name)))
		case r.URL.Path == "/":
			// Relative, because the console may be below any path.
			w.Header().Set("Location", "login")
			w.WriteHeader(http.StatusSeeOther)
		default:
			w.Header().Set("WWW-Authenticate", `Bearer realm="interlock console"`)
			refuse(w, http.StatusUnauthorized, "a token is needed", "log in, or send Authorization: Bearer TOKEN")
		}
	})
}

// letIn names the visitor, or says how long the visitor has to wait after wrong tries.
func (g *gate) letIn(r *http.Request) (name string, wait time.Duration) {
	if len(g.tokens) == 0 {
		return local, 0
	}
	if secret, ok := bearer(r); ok {
		return g.try(r, secret)
	}
	if cookie, err := r.Cookie(cookieName(r)); err == nil {
		return g.session(cookie.Value), 0
	}
	return "", 0
}

// stays reports whether a visitor who was let in may stay. A session can be over by now; a token that came with the
// request is good as long as the Console.
func (g *gate) stays(r *http.Request) bool {
	if _, ok := bearer(r); ok || len(g.tokens) == 0 {
		return true
	}
	cookie, err := r.Cookie(cookieName(r))
	return err == nil && g.session(cookie.Value) != ""
}

// bearer returns the token that came with the request. Authorization of another kind is not for us: a proxy may add it.
func bearer(r *http.Request) (secret string, ok bool) {
	return strings.CutPrefix(r.Header.Get("Authorization"), "Bearer ")
}

// try checks a token, unless it comes too soon after wrong ones.
func (g *gate) try(r *http.Request, secret string) (name string, wait time.Duration) {
	wait = g.tries.judge(source(r), func() (right bool) {
		name, right = g.nameBy(secret)
		return right
	})
	return name, wait
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

// session names whose session it is. Looking the digest up tells nothing about the secrets that there are.
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
