// Package breaking is a page on which the audience breaks locks itself: it puts faults behind the steps of a course,
// the lab plays that on a real Redis, and the page shows what happened, with the player of package report. The
// command is "interlock lab serve".
//
// The page starts servers and processes, so that nobody but the person at this machine may reach it: it is served on a
// loopback address only, below a path that nobody can guess, and it refuses what other sites have a browser send. One
// course runs at a time, and each has an end.
package breaking

import (
	"bytes"
	"context"
	"crypto/rand"
	"embed"
	"fmt"
	"html/template"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock/lab/internal/report"
	"github.com/interlock-go/interlock/lab/internal/search"
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

//go:embed break.html break.js break.css
var files embed.FS

var page = template.Must(template.New("break.html").Funcs(template.FuncMap{
	"both": report.Both, "t": func(en, zh string) template.HTML { return report.Both(story.Text{EN: en, ZH: zh}) },
}).ParseFS(files, "break.html"))

// fault is one that the page offers.
type fault struct {
	Action search.Action `json:"action"`
	Sign   string        `json:"sign"`
	Name   story.Text    `json:"name"`
}

// faults are all of them.
var faults = []fault{
	{search.Dies, "✖", search.Dies.Name()},
	{search.Stops, "❚❚", search.Stops.Name()},
	{search.Passes, "⊘", search.Passes.Name()},
	{search.Loses, "✂", search.Loses.Name()},
	{search.Cuts, "⌁", search.Cuts.Name()},
	{search.Jumps, "◷", search.Jumps.Name()},
}

// index is the page itself.
func (s *Server) index(w http.ResponseWriter, r *http.Request) {
	all, err := courses(r.Context())
	var b bytes.Buffer
	if err == nil {
		err = page.Execute(&b, struct {
			Chinese bool
			Courses []course
			Faults  []fault
			Data    any
		}{s.lang == story.ZH, all, faults, map[string]any{"courses": all, "faults": faults, "most": search.MostFaults}})
	}
	if err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
		return
	}
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	_, _ = w.Write(b.Bytes()) // a reader that is gone does not matter
}

// file serves one of the page's files.
func file(name, kind string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		text, err := files.ReadFile(name)
		if err != nil {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", kind)
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(text))
	}
}

// policy lets the page run its own script, show its own styles, and show what happened in a frame.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src data:; connect-src 'self'; " +
	"frame-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// toldPolicy is that of a page of package report, which has its script and its styles in itself.
const toldPolicy = "default-src 'none'; script-src 'unsafe-inline'; style-src 'unsafe-inline'; base-uri 'none'; " +
	"form-action 'none'; frame-ancestors 'self'"

// guard refuses what other sites have a browser send, as the console does.
func guard(next http.Handler) http.Handler {
	origin := http.NewCrossOriginProtection()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "same-origin") // the address has the secret
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cache-Control", "no-store")
		switch site := r.Header.Get("Sec-Fetch-Site"); {
		case !local(r.Host):
			http.Error(w, "the lab does not answer under the name "+r.Host, http.StatusMisdirectedRequest)
		case origin.Check(r) != nil, r.Method != http.MethodGet && (site == "cross-site" || site == "same-site"):
			http.Error(w, "another site has sent this request", http.StatusForbidden)
		default:
			next.ServeHTTP(w, r)
		}
	})
}

// local reports whether a request was sent to this machine by a name that nobody can point elsewhere.
func local(hostport string) bool {
	host, _, err := net.SplitHostPort(hostport)
	if err != nil {
		host = hostport
	}
	if ip, err := netip.ParseAddr(strings.Trim(host, "[]")); err == nil {
		return ip.IsLoopback()
	}
	return strings.EqualFold(host, "localhost")
}
