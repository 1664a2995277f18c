// The server: its options, its routes and its end. A request goes from the guard to the mux, to letIn (access.go), and
// from there to a handler in acquire.go, lease.go, lock.go or events.go.

package lockapi

import (
	"context"
	_ "embed" // openapi.json
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/webguard"
)

// Options configures a Server. nil means all defaults.
type Options struct {
	// Tokens are the clients that may use the server. Leases belong to the token that took them, whose name operators
	// see as the label of what it holds. Without any, everybody may who reaches it by an address, as localhost or by
	// one of Hosts.
	Tokens []webguard.Token
	Hosts  []string // see webguard.Options

	// Timeout bounds the engine's answer to one request, beside the time that a client asked to wait. The default is 10
	// s.
	Timeout time.Duration

	// MaxLeases bounds the leases, including requests that wait for one. The default is 10,000.
	MaxLeases int

	// MaxStreams bounds the open event streams. The default is 1,000.
	MaxStreams int
}

// guarded is embedded under a name of its own.
type guarded = webguard.Handler

// Server is an http.Handler behind a guard. It is made by [New], and safe for concurrent use.
type Server struct {
	*guarded // answers requests

	locks   *interlock.Client
	o       Options
	table   *table
	streams chan struct{} // holds one value for each open stream

	ending context.Context //nolint:containedctx // ends waits and streams of requests when the server closes
	end    context.CancelFunc
	active sync.WaitGroup // acquisitions, which Close waits for
}

// New returns a server of locks, which stays the caller's and must be closed after the server. It asks the engine
// nothing. It refuses tokens that would let in the wrong client.
func New(locks *interlock.Client, o *Options) (*Server, error) {
	s := &Server{locks: locks}
	if o != nil {
		s.o = *o
	}
	if s.o.Timeout == 0 {
		s.o.Timeout = 10 * time.Second
	}
	if s.o.MaxLeases == 0 {
		s.o.MaxLeases = 10_000
	}
	if s.o.MaxStreams == 0 {
		s.o.MaxStreams = 1000
	}
	guard, err := newGuard(&s.o)
	if err != nil {
		return nil, err
	}
	s.table = newTable(s.o.MaxLeases)
	s.streams = make(chan struct{}, s.o.MaxStreams)
	s.ending, s.end = context.WithCancel(context.Background())
	s.guarded = guard.Mount(s.mux())
	return s, nil
}

// Close ends waits and streams, and refuses requests from then on. It waits for acquisitions under way. Held locks are
// left to run out at their deadlines: their clients may be at work and cannot be told, so releasing would let another
// client in beside them.
func (s *Server) Close() {
	// Waits and streams end first, so that the acquisitions waited for below return.
	s.end()
	leases := s.table.close() // from here on nothing is added, and no request begins an acquisition
	s.active.Wait()
	for _, h := range leases {
		_ = h.lease.Abandon() // an error says that the hold has ended already
	}
}

// handler answers a request of a client that was let in, by the name of its token. Its error becomes a problem.
type handler func(w http.ResponseWriter, r *http.Request, by string) error

// route is one operation of openapi.json.
type route struct {
	method, path string
	handler      handler
}

func (s *Server) routes() []route {
	return []route{
		{http.MethodPost, "/v1/leases", s.acquire},
		{http.MethodGet, "/v1/leases/{id}", s.ofLease(s.look)},
		{http.MethodPost, "/v1/leases/{id}/renew", s.ofLease(s.renew)},
		{http.MethodDelete, "/v1/leases/{id}", s.ofLease(s.release)},
		{http.MethodGet, "/v1/leases/{id}/events", s.ofLease(s.events)},
		{http.MethodGet, "/v1/locks", s.lock},
	}
}

//go:embed openapi.json
var openAPI []byte

// descriptionPath needs no token, because it is the same for everybody.
const descriptionPath = "/openapi.json"

// mux routes requests. It answers itself, with a problem, where no operation fits.
func (s *Server) mux() http.Handler {
	mux := http.NewServeMux()
	allowed := map[string][]string{}
	for _, r := range s.routes() {
		mux.HandleFunc(r.method+" "+r.path, s.letIn(r.handler))
		allowed[r.path] = append(allowed[r.path], r.method)
	}
	mux.HandleFunc("GET "+descriptionPath, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write(openAPI)
	})
	allowed[descriptionPath] = []string{http.MethodGet}
	// The mux would answer in plain text for other methods and paths.
	for path, methods := range allowed {
		allow := strings.Join(methods, ", ")
		mux.HandleFunc(path, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Allow", allow)
			answerProblem(w, problemf(http.StatusMethodNotAllowed, "method", "this path allows "+allow))
		})
	}
	mux.HandleFunc("/", func(w http.ResponseWriter, _ *http.Request) {
		answerProblem(w, problemf(http.StatusNotFound, "path", "see "+descriptionPath+" for the paths"))
	})
	return mux
}
