package console

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"path"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console/board"
	"github.com/interlock-go/interlock/console/page"
	"github.com/interlock-go/interlock/webguard"
)

// Options of a Console. The zero value shows everything to whoever reaches it and changes nothing.
type Options struct {
	URL      string        // shown on the page: the engine's URL without its password
	Prefix   string        // only locks whose names start with it are shown; a hold of another can still be broken
	Interval time.Duration // pause between two looks; 0 is board.DefaultInterval
	Timeout  time.Duration // for one answer of the engine; 0 is board.DefaultTimeout
	MaxLocks int           // how many locks are shown at most; 0 is board.DefaultMaxLocks

	// AllowBreak lets whoever is let in end holds. Each attempt is in the audit.
	AllowBreak bool
	// Audit gets a line of JSON for each attempt, before it is made and when its outcome is known; see AuditEntry. A
	// line that cannot be written prevents the attempt. If it is nil the entries go to Logger. Writes do not overlap.
	Audit io.Writer

	// Tokens are what a visitor must know; see webguard.ReadTokens. With none everybody is let in.
	Tokens []webguard.Token
	// Hosts are the names under which browsers reach the console, without ports, beside localhost and addresses. "*" is
	// any name, for a server that checks the Host header before.
	Hosts []string
	// Who names the visitor in the audit, for programs that know their visitors themselves. Otherwise it is the name of
	// the token, or "local".
	Who func(*http.Request) string

	// Doctor checks the engine, as interlock doctor does: its result is shown as JSON. It runs once at a time, when
	// somebody asks for it. If it is nil there is no such check.
	Doctor func(context.Context) (any, error)

	Logger *slog.Logger // gets failures, and the audit if there is no other; nil is slog.Default

	_ struct{}
}

// Console is an http.Handler that serves the page and what it shows, behind a guard of package webguard. It is safe for
// concurrent use.
//
// The path of a request begins at the console's root: mount a Console below another path with http.StripPrefix. All
// addresses in the page are relative.
type Console struct {
	*guarded // lets visitors in, and answers them

	client *interlock.Client
	opts   Options
	poller *board.Poller
	log    *slog.Logger

	entry   *gate
	audit   *audit
	streams chan struct{} // has one for each open stream of events
	frames  frames
	run     string // tells the revisions of this Console from those of others

	examining sync.Mutex // held while Doctor runs
}

// guarded is embedded under a name that programs do not see.
type guarded = webguard.Handler

// whyNoBreak is what the page shows instead of a button.
const whyNoBreak = "this console does not break locks (--allow-break)"

// New returns a Console of what c's engine tells. It costs nothing while nobody looks. Close it before c.
func New(c *interlock.Client, opts *Options) (*Console, error) {
	if c == nil {
		return nil, errors.New("console: New: the client is nil")
	}
	o := Options{}
	if opts != nil {
		o = *opts
	}
	if o.Timeout <= 0 {
		o.Timeout = board.DefaultTimeout
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	entry, err := newGate(&o)
	if err != nil {
		return nil, err
	}
	noBreak := ""
	if !o.AllowBreak {
		noBreak = whyNoBreak
	}
	con := &Console{
		client: c, opts: o, log: o.Logger, entry: entry, audit: newAudit(&o), run: newRun(),
		streams: make(chan struct{}, maxStreams),
		poller: board.NewPoller(c, &board.Options{
			URL: o.URL, Prefix: o.Prefix, Interval: o.Interval, Timeout: o.Timeout, MaxLocks: o.MaxLocks,
			NoBreak: noBreak,
		}),
	}
	if con.guarded, err = con.routes(); err != nil {
		con.poller.Close()
		return nil, err
	}
	return con, nil
}

// Close ends all streams of events at once, and what the Console asks the engine in the background. It leaves the
// client open.
func (con *Console) Close() { con.poller.Close() }

// Observer returns an Observer that shows losses of another client of the same program among the events, with their
// reasons, if their names start with the prefix. Give it to that client by interlock.Options.Observer; see
// interlock.JoinObservers if it has one.
func (con *Console) Observer() *interlock.Observer {
	return &interlock.Observer{Lost: func(e interlock.Event) {
		if !strings.HasPrefix(e.Name, con.opts.Prefix) {
			return
		}
		con.poller.Tell(board.Event{
			Event: board.Lost, Kind: e.Kind, Name: e.Name, Owner: e.Owner, Token: e.Token, Why: string(e.Reason),
		})
	}}
}

// routes are all addresses.
func (con *Console) routes() (*webguard.Handler, error) {
	files, err := newFiles(len(con.opts.Tokens) > 0)
	if err != nil {
		return nil, err
	}
	all := http.NewServeMux()
	all.HandleFunc("GET /{$}", files.index)
	all.HandleFunc("GET /api/board", con.serveBoard)
	all.HandleFunc("GET /api/events", con.serveEvents)
	all.HandleFunc("GET /api/lock", con.serveLock)
	all.HandleFunc("GET /api/latch", con.serveLatch)
	all.HandleFunc("GET /api/doctor", con.serveDoctor)
	all.HandleFunc("GET /api/audit", con.serveAudit)
	all.HandleFunc("POST /api/break", con.serveBreak)
	all.HandleFunc("GET /static/{file}", files.static)
	all.HandleFunc("GET /login", con.entry.form)
	all.HandleFunc("POST /login", con.entry.login)
	all.HandleFunc("POST /logout", con.entry.logout)
	return con.entry.guard.Mount(dress(all)), nil
}

// types are those of the page's files, so that they do not depend on what the machine knows.
var types = map[string]string{
	".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8",
	".json": "application/json", ".svg": "image/svg+xml",
}

// file is one file of the page, ready to be sent.
type file struct {
	content   []byte
	kind, tag string
}

// files are those of the page, by name.
type files map[string]file

// noLogout is what the page has where nobody logs in.
const noLogout = ` id="logout" hidden`

// newFiles reads the page once. It has a button to log out if there is a login.
func newFiles(login bool) (files, error) {
	all := make(files)
	entries, err := fs.ReadDir(page.Files, "static")
	if err != nil {
		return nil, fmt.Errorf("console: the page: %w", err)
	}
	for _, e := range entries {
		content, err := fs.ReadFile(page.Files, "static/"+e.Name())
		if err != nil {
			return nil, fmt.Errorf("console: the page: %w", err)
		}
		if login && e.Name() == "index.html" {
			content = bytes.Replace(content, []byte(noLogout), []byte(` id="logout"`), 1)
		}
		sum := sha256.Sum256(content)
		kind := types[path.Ext(e.Name())]
		if kind == "" {
			return nil, fmt.Errorf("console: the page: %s has no type", e.Name())
		}
		all[e.Name()] = file{content, kind, `"` + hex.EncodeToString(sum[:12]) + `"`}
	}
	return all, nil
}

// index sends the page.
func (f files) index(w http.ResponseWriter, r *http.Request) { f.send(w, r, "index.html") }

// static sends a file that the page names.
func (f files) static(w http.ResponseWriter, r *http.Request) { f.send(w, r, r.PathValue("file")) }

// send sends a file, unless the browser has it already: it asks each time, because the next version may differ.
func (f files) send(w http.ResponseWriter, r *http.Request, name string) {
	one, ok := f[name]
	if !ok {
		http.NotFound(w, r)
		return
	}
	w.Header().Set("Cache-Control", "no-cache")
	w.Header().Set("ETag", one.tag)
	if r.Header.Get("If-None-Match") == one.tag {
		w.WriteHeader(http.StatusNotModified)
		return
	}
	w.Header().Set("Content-Type", one.kind)
	_, _ = w.Write(one.content) // whoever has gone needs no page
}

// policy lets the page run its own scripts, show its own styles and talk to this server, and nothing else.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'"

// dress gives the answers what pages of a browser need beside what package webguard gives all answers.
func dress(next http.Handler) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		h := w.Header()
		h.Set("Content-Security-Policy", policy)
		// With no-referrer a form of the page would be sent with the origin null, and refused: over HTTP browsers do
		// not say in another way that it comes from the same site.
		h.Set("Referrer-Policy", "same-origin")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		next.ServeHTTP(w, r)
	}
}
