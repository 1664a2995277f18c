package breaking

import (
	"context"
	"crypto/rand"
	"fmt"
	"net"
	"net/http"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lab/internal/story"
)

// longest bounds one course. Each of its faults waits for two and a half leases of the sound lock at most: until a
// client is told of its loss, and until its cable is whole again. Whoever comes last waits for one more at most.
const longest = 2 * time.Minute

// kept is how many pages of what happened are kept.
const kept = 20

// Server is the page.
type Server struct {
	secret string
	lang   story.Lang
	mux    *http.ServeMux

	busy sync.Mutex // held by the course that runs, and by Serve after its end

	mu    sync.Mutex // guards what follows
	pages map[int][]byte
	last  int // number of the newest page
}

// New returns the page, in a language that its reader can change.
func New(lang story.Lang) *Server {
	s := &Server{secret: rand.Text(), lang: lang, mux: http.NewServeMux(), pages: map[int][]byte{}}
	base := "/" + s.secret
	s.mux.HandleFunc("GET "+base+"/{$}", s.index)
	s.mux.HandleFunc("GET "+base+"/break.js", file("break.js", "text/javascript; charset=utf-8"))
	s.mux.HandleFunc("GET "+base+"/break.css", file("break.css", "text/css; charset=utf-8"))
	s.mux.HandleFunc("POST "+base+"/break", s.breakIt)
	s.mux.HandleFunc("GET "+base+"/told/{number}", s.told)
	return s
}

// Path is where the page is, with what nobody can guess.
func (s *Server) Path() string { return "/" + s.secret + "/" }

// ServeHTTP answers whoever knows the path.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) { guard(s.mux).ServeHTTP(w, r) }

// Serve serves the page on l, until ctx ends or l fails. The course that runs ends then, and its servers before Serve
// returns; no other begins.
func (s *Server) Serve(ctx context.Context, l net.Listener) error {
	ctx, cancel := context.WithCancel(ctx)
	defer s.busy.Lock() // after cancel: waits for the course
	defer cancel()
	web := &http.Server{
		Handler: s, ReadHeaderTimeout: 10 * time.Second,
		BaseContext: func(net.Listener) context.Context { return ctx }, // a course ends with the command
	}
	defer func() { _ = web.Close() }()
	ended := make(chan error, 1)
	go func() { ended <- web.Serve(l) }() // ends by Close at the latest
	select {
	case err := <-ended:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Listen listens on an address, which must be a loopback one.
func Listen(ctx context.Context, address string) (net.Listener, error) {
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return nil, err
	}
	if ip := net.ParseIP(host); ip == nil || !ip.IsLoopback() {
		return nil, fmt.Errorf("%s is no loopback address: the page starts programs on this machine", address)
	}
	return new(net.ListenConfig).Listen(ctx, "tcp", address)
}

// keep keeps a page of what happened, and returns its number.
func (s *Server) keep(page []byte) int {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.last++
	s.pages[s.last] = page
	delete(s.pages, s.last-kept)
	return s.last
}
