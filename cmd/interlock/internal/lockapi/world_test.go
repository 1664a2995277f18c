package lockapi

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/memlock" // mem://
)

// world is a server, and who asks it. Each answer is checked against openapi.json.
type world struct {
	*testing.T
	server    *Server
	locks     *interlock.Client
	url       string
	described *description
	client    *http.Client
}

const secret = "0123456789abcdef"

// newWorld serves an engine in memory that other worlds of the test share.
func newWorld(t *testing.T, o *Options) *world {
	t.Helper()
	return serve(t, time.Minute, o)
}

// serve is newWorld with the limits that the server has for reading and writing one request.
func serve(t *testing.T, limit time.Duration, o *Options) *world {
	t.Helper()
	locks, err := interlock.Open(t.Context(), "mem://"+t.Name(), nil)
	if err != nil {
		t.Fatal(err)
	}
	return serveOn(t, limit, locks, o)
}

// serveOn is serve with a client of any engine, which it closes.
func serveOn(t *testing.T, limit time.Duration, locks *interlock.Client, o *Options) *world {
	t.Helper()
	server, err := New(locks, o)
	if err != nil {
		t.Fatal(err)
	}
	w := &world{T: t, server: server, locks: locks, described: readDescription(t)}
	web := httptest.NewUnstartedServer(w.server)
	web.Config.ReadTimeout, web.Config.WriteTimeout = limit, limit
	web.Start()
	w.url, w.client = web.URL, web.Client()
	t.Cleanup(func() {
		w.server.Close()
		web.Close()
		if err := locks.Close(); err != nil {
			t.Error(err)
		}
	})
	return w
}

// TestMain fails if goroutines of servers outlive all tests.
func TestMain(m *testing.M) {
	code := m.Run()
	left := ""
	for end := time.Now().Add(5 * time.Second); code == 0 && time.Now().Before(end); {
		time.Sleep(5 * time.Millisecond) // real: goroutines do not tell when they have ended
		buffer := make([]byte, 1<<20)
		left = string(buffer[:runtime.Stack(buffer, true)])
		if !strings.Contains(left, "lockapi.(*") && !strings.Contains(left, "interlock/internal/shell.") {
			os.Exit(0)
		}
	}
	if code == 0 {
		fmt.Fprintf(os.Stderr, "goroutines are left:\n%s", left)
	}
	os.Exit(1)
}

// answered is an answer, as far as tests look at it.
type answered struct {
	leaseObject

	Status int
	Type   string // of a problem, without docs
	Detail string
	Holder *holderObject
	Held   bool
	Header http.Header
	Body   string
}

// ask sends a request, and fails the test if the answer has another status or is not as described.
func (w *world) ask(status int, method, path, body string, header ...string) answered {
	w.Helper()
	a := w.try(method, path, body, header...)
	if a.Status != status {
		w.Fatalf("%s %s %s: status %d, want %d: %s", method, path, body, a.Status, status, a.Body)
	}
	return a
}

func (w *world) try(method, path, body string, header ...string) answered {
	w.Helper()
	response, text := w.send(w.Context(), method, path, body, header...)
	if err := w.described.check(method, path, response, text); err != nil {
		w.Errorf("%s %s: %v", method, path, err)
	}
	a := answered{Status: response.StatusCode, Header: response.Header, Body: string(text)}
	if len(text) > 0 {
		var problem struct {
			Type   string
			Detail string
			Status int
			Holder *holderObject
			Held   bool
		}
		if err := json.Unmarshal(text, &problem); err != nil {
			w.Fatalf("%v: %s", err, text)
		}
		a.Type = strings.TrimPrefix(problem.Type, docs)
		a.Detail, a.Holder, a.Held = problem.Detail, problem.Holder, problem.Held
		if problem.Type != "" && problem.Status != a.Status {
			w.Errorf("a problem has the status %d in an answer with %d", problem.Status, a.Status)
		}
		_ = json.Unmarshal(text, &a.leaseObject) // what is no lease leaves it empty
	}
	return a
}

func (w *world) send(ctx context.Context, method, path, body string, header ...string) (*http.Response, []byte) {
	w.Helper()
	response, err := w.client.Do(w.request(ctx, method, path, body, header...))
	if err != nil {
		w.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		w.Fatal(err)
	}
	return response, text
}

func (w *world) request(ctx context.Context, method, path, body string, header ...string) *http.Request {
	w.Helper()
	r, err := http.NewRequestWithContext(ctx, method, w.url+path, strings.NewReader(body))
	if err != nil {
		w.Fatal(err)
	}
	if body != "" {
		r.Header.Set("Content-Type", "application/json")
	}
	for i := 0; i+1 < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	return r
}

// take acquires a lock that is free.
func (w *world) take(body string) answered {
	w.Helper()
	return w.ask(http.StatusCreated, http.MethodPost, "/v1/leases", body)
}

// waits starts an acquisition and returns where its answer comes. It has returned when the client waits in line.
func (w *world) waits(name, body string) <-chan answered {
	w.Helper()
	done := make(chan answered, 1)
	go func() { done <- w.try(http.MethodPost, "/v1/leases", body) }() // ends with the wait
	w.until("a waiting client", func() bool { return w.waiters(name) > 0 })
	return done
}

func (w *world) waiters(name string) int {
	w.server.table.mu.Lock()
	defer w.server.table.mu.Unlock()
	return w.server.table.waiters[name]
}

// until polls, where nothing tells.
func (w *world) until(what string, ok func() bool) {
	w.Helper()
	for end := time.Now().Add(20 * time.Second); !ok(); {
		time.Sleep(5 * time.Millisecond) // real: it asks a server
		if time.Now().After(end) {
			w.Fatalf("there is no %s", what)
		}
	}
}

// watch opens a stream and returns its next event.
func (w *world) watch(id string) (next func() (string, leaseObject), closes func()) {
	w.Helper()
	response, err := w.client.Do(w.request(w.Context(), http.MethodGet, "/v1/leases/"+id+"/events", ""))
	if err != nil {
		w.Fatal(err)
	}
	if err := w.described.check(http.MethodGet, "/v1/leases/"+id+"/events", response, []byte("events")); err != nil {
		w.Error(err)
	}
	lines := bufio.NewScanner(response.Body)
	return func() (event string, o leaseObject) {
		w.Helper()
		for lines.Scan() {
			if name, ok := strings.CutPrefix(lines.Text(), "event: "); ok {
				event = name
			}
			if data, ok := strings.CutPrefix(lines.Text(), "data: "); ok {
				lease := w.described.at(w.described.doc, "components", "schemas", "Lease")
				if err := w.described.checkJSON(lease, []byte(data)); err != nil {
					w.Error(err)
				}
				if err := json.Unmarshal([]byte(data), &o); err != nil {
					w.Fatal(err)
				}
				return event, o
			}
		}
		return "end", o
	}, func() { _ = response.Body.Close() }
}
