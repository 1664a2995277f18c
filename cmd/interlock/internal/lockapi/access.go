// Who may use the server: tokens, or programs of this machine if there are none. Every request comes through letIn
// before its handler.

package lockapi

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"strings"
)

// digested is a token and the digest of its secret. Digests have one length, so the time of comparing them tells
// nothing about a secret.
type digested struct {
	Token
	digest [sha256.Size]byte
}

func digestOf(secret string) [sha256.Size]byte { return sha256.Sum256([]byte(secret)) }

// letIn calls h for a client that may use the server, and turns its error into an answer.
func (s *Server) letIn(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "no-store")
		by, err := s.who(w, r)
		if err == nil {
			err = h(w, r, by)
		}
		if err != nil {
			answerProblem(w, problemOf(err))
		}
	}
}

// who finds the token of a request, or returns the problem that says what to send.
func (s *Server) who(w http.ResponseWriter, r *http.Request) (*Token, error) {
	if len(s.tokens) == 0 {
		return anybody(r)
	}
	scheme, secret, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	given := digestOf(secret)
	var by *Token
	for i := range s.tokens { // all of them, so that the time tells nothing
		if subtle.ConstantTimeCompare(s.tokens[i].digest[:], given[:]) == 1 {
			by = &s.tokens[i].Token
		}
	}
	if by == nil || !strings.EqualFold(scheme, "Bearer") {
		w.Header().Set("WWW-Authenticate", `Bearer realm="interlock"`)
		return nil, problemf(http.StatusUnauthorized, "token", "send Authorization: Bearer TOKEN")
	}
	return by, nil
}

// anybody lets in programs of this machine. It refuses a web page whose own name has been made to point here (DNS
// rebinding): a browser sends that name as the host.
func anybody(r *http.Request) (*Token, error) {
	host := r.Host
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if host == "localhost" || net.ParseIP(strings.Trim(host, "[]")) != nil {
		return &Token{Name: "local"}, nil
	}
	return nil, problemf(http.StatusForbidden, "host", "without tokens use localhost or the IP address")
}
