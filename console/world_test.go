package console_test

import (
	"bufio"
	"bytes"
	"encoding/json"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console"
	"github.com/interlock-go/interlock/console/board"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/memlock"
)

// world is an engine in memory whose answers can fail, a client of it, and a console that looks often, behind a server.
type world struct {
	*testing.T
	driver  driver.Driver
	faults  *faulty.Control
	client  *interlock.Client
	console *console.Console
	server  *httptest.Server // started by the first request; none in virtual time
	logged  *bytes.Buffer    // of the console; read it only when nothing is asked any more
}

// newWorld starts a world with those options; nil is none. What they lack that tests need is filled in.
func newWorld(t *testing.T, o *console.Options) *world {
	t.Helper()
	d, faults := faulty.Wrap(memlock.New(nil), 1)
	c, err := interlock.New(d, &interlock.Options{ClientName: "here"})
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, driver: d, faults: faults, client: c, logged: new(bytes.Buffer)}
	if o == nil {
		o = &console.Options{}
	}
	if o.Interval == 0 {
		o.Interval = 10 * time.Millisecond
	}
	o.Logger = w.logger()
	if w.console, err = console.New(c, o); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		w.console.Close() // first, so that streams end and the server can
		if w.server != nil {
			w.server.Close()
		}
		if err := c.Close(); err != nil {
			t.Error(err)
		}
		if err := d.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

func (w *world) logger() *slog.Logger { return slog.New(slog.NewTextHandler(w.logged, nil)) }

// serve has the requests answered by something else than the console itself.
func (w *world) serve(h http.Handler) {
	w.server = httptest.NewServer(h)
}

// lock takes a lock that is held until the test ends, or is broken.
func (w *world) lock(name string) *interlock.Lease {
	w.Helper()
	l, err := w.client.Lock(w.Context(), name)
	if err != nil {
		w.Fatal(err)
	}
	return l
}

// request makes a request of a program: what a browser would add is in the pairs of headers.
func (w *world) request(method, path, body string, headers ...string) *http.Request {
	w.Helper()
	if w.server == nil {
		w.server = httptest.NewServer(w.console)
	}
	r, err := http.NewRequestWithContext(w.Context(), method, w.server.URL+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	return r
}

// reply is an answer that was read.
type reply struct {
	*http.Response
	body string
}

// do sends a request, and follows no redirection.
func (w *world) do(r *http.Request) reply {
	w.Helper()
	resp, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		w.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		w.Fatal(err)
	}
	return reply{resp, string(body)}
}

func (w *world) get(path string, headers ...string) reply {
	w.Helper()
	return w.do(w.request(http.MethodGet, path, "", headers...))
}

// want checks the status and a part of the body.
func (r reply) want(t *testing.T, status int, part string) reply {
	t.Helper()
	if r.StatusCode != status || !strings.Contains(r.body, part) {
		t.Errorf("%s %s: got %d %q, want %d %q", r.Request.Method, r.Request.URL, r.StatusCode, r.body, status, part)
	}
	return r
}

// into decodes the body.
func (r reply) into(t *testing.T, v any) {
	t.Helper()
	if err := json.Unmarshal([]byte(r.body), v); err != nil {
		t.Fatalf("%v: %s", err, r.body)
	}
}

// events is an open stream of events.
type events struct {
	*world
	body  io.ReadCloser
	lines *bufio.Reader
}

// message is one event of a stream.
type message struct {
	event, id string
	data      []byte
}

// watch opens a stream that ends with the test, at the latest.
func (w *world) watch(headers ...string) *events {
	w.Helper()
	resp, err := http.DefaultTransport.RoundTrip(w.request(http.MethodGet, "/api/events", "", headers...))
	if err != nil {
		w.Fatal(err)
	}
	w.Cleanup(func() { resp.Body.Close() })
	if resp.StatusCode != http.StatusOK || resp.Header.Get("Content-Type") != "text/event-stream" {
		w.Fatalf("%d %v", resp.StatusCode, resp.Header)
	}
	return &events{w, resp.Body, bufio.NewReader(resp.Body)}
}

// next reads the next message, or returns the error that ended the stream.
func (s *events) next() (m message, err error) {
	for {
		line, err := s.lines.ReadString('\n')
		if err != nil {
			return m, err
		}
		line = strings.TrimSuffix(line, "\n")
		field, value, _ := strings.Cut(line, ": ")
		switch {
		case line == "" && m.data != nil:
			return m, nil
		case field == "event":
			m.event = value
		case field == "id":
			m.id = value
		case field == "data":
			m.data = []byte(value)
		}
	}
}

// until reads messages until the board that they make is as wanted, and returns it with the id of the last one.
func (s *events) until(has *board.Board, what string, wanted func(b *board.Board) bool) (*board.Board, string) {
	s.Helper()
	for {
		m, err := s.next()
		if err != nil {
			s.Fatalf("waiting for %s: %v; the board is %+v", what, err, has)
		}
		var change board.Change
		switch m.event {
		case "board":
			has = new(board.Board)
			err = json.Unmarshal(m.data, has)
		case "change":
			err = json.Unmarshal(m.data, &change)
			has = change.Apply(has)
		}
		if err != nil {
			s.Fatalf("%v: %s", err, m.data)
		}
		if wanted(has) {
			return has, m.id
		}
	}
}
