// Who may use the server: package webguard says it of every request, before its handler. What it refuses becomes a
// problem here.

package lockapi

import (
	"net/http"

	"github.com/interlock-go/interlock/webguard"
)

// newGuard returns the guard of a server with these options.
func newGuard(o *Options) (*webguard.Guard, error) {
	return webguard.New(&webguard.Options{
		Tokens: o.Tokens, Hosts: o.Hosts,
		Public: func(r *http.Request) bool { return r.URL.Path == descriptionPath },
		Linked: func(r *http.Request) bool { return r.URL.Path == descriptionPath },
		Refuse: func(w http.ResponseWriter, _ *http.Request, why *webguard.Refusal) {
			answerProblem(w, problemf(why.Status, string(why.Reason), why.Detail+": "+why.Hint))
		},
	})
}

// letIn calls h for a client that was let in, by the name of its token, and turns its error into an answer.
func (s *Server) letIn(h handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		if err := h(w, r, webguard.Visitor(r.Context())); err != nil {
			answerProblem(w, problemOf(err))
		}
	}
}
