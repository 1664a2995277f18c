package webguard

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Local is the name of a visitor where nobody needs a token.
const Local = "local"

// Options of a Guard. nil means all defaults: everybody is let in who asks for this machine by an address or as
// localhost, and whom no foreign page has sent.
type Options struct {
	// Tokens are what a visitor must know; see ReadTokens. With none everybody is let in.
	Tokens []Token
	// Hosts are names under which the server is reached, without ports, beside localhost and addresses. "*" is any
	// name, for a server behind one that checks the Host header. With Tokens and neither Hosts nor Session, every name
	// is good: a page under a foreign name does not know a token.
	Hosts []string
	// Basic asks for the token as the password of HTTP basic authentication, with its name as the user. Otherwise a
	// program sends "Authorization: Bearer TOKEN", and authorization of another kind is ignored: a proxy may add it.
	Basic bool

	// Public reports whether a request needs no token: a page to log in, or a description. nil is none.
	Public func(*http.Request) bool
	// Linked reports whether pages of other sites may lead to it, as a link does. It is asked for GET and HEAD only.
	// nil is none.
	Linked func(*http.Request) bool
	// Session names the visitor whose session the request belongs to, or returns "". nil is a handler without sessions.
	Session func(*http.Request) string
	// Refuse answers a request that is not let in. The headers that the refusal needs are set already. nil answers in
	// plain text.
	Refuse func(w http.ResponseWriter, r *http.Request, why *Refusal)

	_ struct{}
}

// Reason says why a request is refused.
type Reason string

// The reasons of a Guard.
const (
	WrongHost   Reason = "host"   // the name of the host may be somebody else's
	OtherSite   Reason = "origin" // a page of another site has sent it
	TokenNeeded Reason = "token"  // it has no token, or a wrong one
	TooMany     Reason = "tries"  // its address has sent too many wrong tokens at the same time
)

// Refusal is what a Guard answers instead of the handler.
type Refusal struct {
	Reason Reason // one word for programs
	Status int    // of the answer
	Detail string // what happened
	Hint   string // what to do about it
}

// Guard decides who may reach the handlers that it mounts. It is made by [New], and safe for concurrent use.
type Guard struct {
	o      Options
	tokens []tokenDigest // none: everybody is let in
	origin *http.CrossOriginProtection
	tries  tries
}

// New returns a Guard. It refuses tokens that would let in the wrong one.
func New(o *Options) (*Guard, error) {
	g := &Guard{origin: http.NewCrossOriginProtection(), tries: tries{next: make(map[string]time.Time)}}
	if o != nil {
		g.o = *o
	}
	if err := checkTokens(g.o.Tokens); err != nil {
		return nil, err
	}
	for _, t := range g.o.Tokens {
		g.tokens = append(g.tokens, tokenDigest{t.Name, digestOf(t.Secret)})
	}
	if g.o.Refuse == nil {
		g.o.Refuse = func(w http.ResponseWriter, _ *http.Request, why *Refusal) {
			http.Error(w, why.Detail+": "+why.Hint, why.Status)
		}
	}
	return g, nil
}

// Guarded is a handler behind a Guard. Only [Guard.Mount] makes one; what embeds it is one too.
type Guarded interface {
	http.Handler
	guarded()
}

// Handler is a handler behind its Guard. The zero value refuses everything.
type Handler struct {
	guard *Guard
	next  http.Handler
}

var _ Guarded = (*Handler)(nil)

func (*Handler) guarded() {}

// Mount puts a handler behind the guard. What several mounts of one Guard count as wrong tokens, they count together.
func (g *Guard) Mount(next http.Handler) *Handler { return &Handler{g, next} }

// ServeHTTP lets the request in, or refuses it. Answers are not kept by caches, not shown inside of pages of other
// sites, and not taken for another type than they have; the handler may say otherwise.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cross-Origin-Resource-Policy", "same-origin")
	header.Set("Content-Security-Policy", "default-src 'none'; frame-ancestors 'none'")
	header.Set("Cache-Control", "no-store")
	if h.guard == nil {
		http.Error(w, "this handler has no guard", http.StatusForbidden)
		return
	}
	name, why := h.guard.judge(w, r)
	if why != nil {
		h.guard.o.Refuse(w, r, why)
		return
	}
	h.next.ServeHTTP(w, r.WithContext(context.WithValue(r.Context(), visitorKey{}, name)))
}

// visitorKey is the key of the visitor's name in a request's context.
type visitorKey struct{}

// Visitor returns the name of the token that let the request in, [Local] if there are no tokens, or "" if the request
// needed none.
func Visitor(ctx context.Context) string {
	name, _ := ctx.Value(visitorKey{}).(string)
	return name
}

// judge names the visitor, or says why the request is refused.
func (g *Guard) judge(w http.ResponseWriter, r *http.Request) (name string, why *Refusal) {
	switch {
	case !g.knowsHost(r.Host):
		return "", &Refusal{
			WrongHost, http.StatusMisdirectedRequest, "this server does not answer under the name " + r.Host,
			"use localhost or the address, or name it with --host",
		}
	case g.fromElsewhere(r):
		return "", &Refusal{
			OtherSite, http.StatusForbidden, "another site has sent this request", "open the server by itself",
		}
	case g.o.Public != nil && g.o.Public(r):
		return "", nil
	}
	return g.who(w, r)
}

// who names the visitor by token or session.
func (g *Guard) who(w http.ResponseWriter, r *http.Request) (string, *Refusal) {
	if len(g.tokens) == 0 {
		return Local, nil
	}
	if user, secret, ok := g.credentials(r); ok {
		name, tooMany := g.try(r, user, secret)
		if tooMany > 0 {
			return "", tooSoon(w, tooMany)
		}
		if name != "" {
			return name, nil
		}
	} else if g.o.Session != nil {
		if name := g.o.Session(r); name != "" {
			return name, nil
		}
	}
	why := &Refusal{TokenNeeded, http.StatusUnauthorized, "a valid token is needed", "send Authorization: Bearer TOKEN"}
	scheme := "Bearer"
	if g.o.Basic {
		scheme, why.Hint = "Basic", "send a token's name as the user, and the token as the password"
	}
	w.Header().Set("WWW-Authenticate", scheme+` realm="interlock"`)
	return "", why
}

// tooSoon is the refusal of a wrong token where too many wait for their answer already.
func tooSoon(w http.ResponseWriter, wait time.Duration) *Refusal {
	seconds := int((wait + time.Second - 1) / time.Second)
	w.Header().Set("Retry-After", fmt.Sprint(seconds))
	return &Refusal{
		TooMany, http.StatusTooManyRequests, "too many wrong tokens came from this address",
		fmt.Sprintf("wait %d s", seconds),
	}
}

// Known reports whether a request comes with a right token, or needs none. It counts nothing: it is for requests that
// were let in, and last.
func (g *Guard) Known(r *http.Request) bool {
	if len(g.tokens) == 0 {
		return true
	}
	user, secret, ok := g.credentials(r)
	return ok && g.nameBy(user, secret) != ""
}

// NeedsToken reports whether the guard has tokens.
func (g *Guard) NeedsToken() bool { return len(g.tokens) > 0 }

// Try names whose secret it is, for a handler that asks for a token by itself, as a login does. Of a wrong one it
// returns "" when the answer may be given, or at once how long the address should wait, if too many wait already.
func (g *Guard) Try(r *http.Request, secret string) (name string, tooMany time.Duration) {
	return g.try(r, "", secret)
}

// try compares before it counts: a right token passes, whoever else has guessed from the same address.
func (g *Guard) try(r *http.Request, user, secret string) (name string, tooMany time.Duration) {
	if name = g.nameBy(user, secret); name != "" {
		return name, 0
	}
	wait, ok := g.tries.wrong(source(r), time.Now())
	if !ok {
		return "", wait
	}
	timer := time.NewTimer(wait)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-r.Context().Done(): // nobody waits for the answer any more
	}
	return "", 0
}

// credentials returns the token that came with the request. Without a user, the token alone says who it is.
func (g *Guard) credentials(r *http.Request) (user, secret string, ok bool) {
	if g.o.Basic {
		user, secret, ok = r.BasicAuth()
		return user, secret, ok && user != ""
	}
	scheme, secret, ok := strings.Cut(r.Header.Get("Authorization"), " ")
	return "", secret, ok && strings.EqualFold(scheme, "Bearer")
}
