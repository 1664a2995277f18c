package httplock_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/adapters/httplock"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/memlock"
)

func client(t *testing.T) *interlock.Client {
	t.Helper()
	c, err := interlock.Open(t.Context(), "mem://"+t.Name(), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// byPath has a lock for each path.
func byPath(c *interlock.Client) func(r *http.Request) *interlock.Mutex {
	return func(r *http.Request) *interlock.Mutex { return c.Mutex(r.URL.Path, nil) }
}

//nolint:revive // the handler comes first, as in ServeHTTP
func get(h http.Handler, ctx context.Context, path string) *http.Response {
	w := httptest.NewRecorder()
	h.ServeHTTP(w, httptest.NewRequestWithContext(ctx, http.MethodGet, path, nil))
	return w.Result()
}

var nothing = http.HandlerFunc(func(http.ResponseWriter, *http.Request) {})

func TestMiddleware_ServesOneRequestPerKeyAtATime(t *testing.T) {
	c := client(t)
	serve := httplock.Middleware(byPath(c), &httplock.Options{RetryAfter: 1500 * time.Millisecond})
	inner := serve(nothing)
	outer := serve(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		second := get(inner, t.Context(), "/a")
		if second.StatusCode != http.StatusConflict || second.Header.Get("Retry-After") != "2" {
			t.Errorf("a second request is answered %d, Retry-After %q; want 409 and 2",
				second.StatusCode, second.Header.Get("Retry-After"))
		}
		if other := get(inner, t.Context(), "/b"); other.StatusCode != http.StatusOK {
			t.Errorf("a request with another key is answered %d", other.StatusCode)
		}
		if again := get(inner, r.Context(), "/a"); again.StatusCode != http.StatusOK {
			t.Errorf("a request of the same owner is answered %d; want that it re-enters", again.StatusCode)
		}
		interlock.AssertHeld(r.Context(), "/a")
		if lease, ok := httplock.Lease(r.Context()); !ok || lease.Name() != "/a" {
			t.Error("the handler does not find its lease")
		}
	}))
	if first := get(outer, t.Context(), "/a"); first.StatusCode != http.StatusOK {
		t.Errorf("the first request is answered %d", first.StatusCode)
	}
	if after := get(inner, t.Context(), "/a"); after.StatusCode != http.StatusOK {
		t.Errorf("after the response the lock is still held: %d", after.StatusCode)
	}
	if _, ok := httplock.Lease(t.Context()); ok {
		t.Error("there is a lease outside of a handler")
	}
}

func TestMiddleware_WithWait_WaitsAndThenRefuses(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d := memlock.New(nil)
		c, err := interlock.New(d, nil)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		options := &httplock.Options{Wait: time.Second, HeldStatus: http.StatusLocked}
		h := httplock.Middleware(byPath(c), options)(nothing)
		lease, err := c.Lock(t.Context(), "/a")
		if err != nil {
			t.Fatal(err)
		}
		begin := time.Now()
		if r := get(h, t.Context(), "/a"); r.StatusCode != http.StatusLocked || time.Since(begin) != time.Second {
			t.Errorf("answered %d after %v; want 423 after 1s", r.StatusCode, time.Since(begin))
		}
		time.AfterFunc(500*time.Millisecond, func() { _ = lease.Unlock(t.Context()) })
		begin = time.Now()
		if r := get(h, t.Context(), "/a"); r.StatusCode != http.StatusOK || time.Since(begin) != 500*time.Millisecond {
			t.Errorf("answered %d after %v; want 200 after 500ms", r.StatusCode, time.Since(begin))
		}
	})
}

func TestMiddleware_EndsTheRequestsContext_AndTells_WhenTheLockIsLost(t *testing.T) {
	c := client(t)
	var told error
	opts := &httplock.Options{Lost: func(_ *http.Request, err error) { told = err }}
	h := httplock.Middleware(byPath(c), opts)(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		lease, _ := httplock.Lease(r.Context())
		if err := c.Break(r.Context(), interlock.Kind("mutex"), "/a", lease.Token()); err != nil {
			t.Error(err)
		}
		<-r.Context().Done()
		if cause := context.Cause(r.Context()); !errors.Is(cause, interlock.ErrLost) {
			t.Errorf("the context's cause is %v; want the loss", cause)
		}
	}))
	get(h, t.Context(), "/a")
	if !errors.Is(told, interlock.ErrLost) {
		t.Errorf("Lost was told %v", told)
	}
}

func TestMiddleware_WithoutTheEngine_Says503_AndABadName500(t *testing.T) {
	c := client(t)
	byQuery := func(r *http.Request) *interlock.Mutex { return c.Mutex(r.URL.Query().Get("lock"), nil) }
	h := httplock.Middleware(byQuery, nil)(nothing)
	r := get(h, t.Context(), "/")
	if again := r.Header.Get("Retry-After"); r.StatusCode != http.StatusInternalServerError || again != "" {
		t.Errorf("a lock without a name is answered %d, Retry-After %q; want 500 and none", r.StatusCode, again)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if r := get(h, ended, "/?lock=a"); r.StatusCode != http.StatusServiceUnavailable {
		t.Errorf("a client that has gone is answered %d; want 503", r.StatusCode)
	}
	_ = c.Close()
	r = get(h, t.Context(), "/?lock=a")
	if again := r.Header.Get("Retry-After"); r.StatusCode != http.StatusServiceUnavailable || again != "1" {
		t.Errorf("after Close: %d, Retry-After %q; want 503 and 1", r.StatusCode, again)
	}
}

func TestMiddleware_OnAHungEngine_Says503_NotThatSomebodyHasIt(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		d, control := faulty.Wrap(memlock.New(nil), 1)
		c, err := interlock.New(d, &interlock.Options{Lease: time.Second})
		if err != nil {
			t.Fatal(err)
		}
		control.Pause()
		h := httplock.Middleware(byPath(c), &httplock.Options{Wait: time.Second})(nothing)
		begin := time.Now()
		r := get(h, t.Context(), "/a")
		took, again := time.Since(begin), r.Header.Get("Retry-After")
		if r.StatusCode != http.StatusServiceUnavailable || again != "1" || took != time.Second {
			t.Errorf("answered %d, Retry-After %q, after %v; want 503, 1 and 1s", r.StatusCode, again, took)
		}
		control.Resume()
		_ = c.Close() // undoes what the hung engine may have done
	})
}

func TestMiddleware_WithoutAConnection_Says503AtOnce(t *testing.T) {
	d, _ := faulty.Wrap(memlock.New(nil), 1, faulty.Rule{Op: faulty.Acquire, Count: 1, Drop: faulty.Request})
	c, err := interlock.New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	h := httplock.Middleware(byPath(c), nil)(nothing)
	r := get(h, t.Context(), "/a")
	if again := r.Header.Get("Retry-After"); r.StatusCode != http.StatusServiceUnavailable || again != "1" {
		t.Errorf("answered %d, Retry-After %q; want 503 and 1", r.StatusCode, again)
	}
}

func TestMiddleware_OfAHandlerThatPanics_ReleasesTheLock(t *testing.T) {
	c := client(t)
	panics := func(http.ResponseWriter, *http.Request) { panic(http.ErrAbortHandler) }
	h := httplock.Middleware(byPath(c), nil)(http.HandlerFunc(panics))
	func() {
		defer func() {
			//nolint:errorlint // a panic's value, not an error that was wrapped
			if got := recover(); got != http.ErrAbortHandler {
				t.Errorf("the server sees the panic %v", got)
			}
		}()
		get(h, t.Context(), "/a")
	}()
	if r := get(httplock.Middleware(byPath(c), nil)(nothing), t.Context(), "/a"); r.StatusCode != http.StatusOK {
		t.Errorf("the lock is still held: %d", r.StatusCode)
	}
}

// watched is a writer that calls complete when the response is complete for its client.
type watched struct {
	*httptest.ResponseRecorder
	bodyless bool
	length   int
	complete func()
	done     bool
}

func (w *watched) Write(p []byte) (int, error) {
	n, err := w.ResponseRecorder.Write(p)
	if w.length > 0 && w.Body.Len() >= w.length && !w.done {
		w.done = true
		w.complete()
	}
	return n, err
}

func (w *watched) Flush() {
	if w.bodyless && !w.done {
		w.done = true
		w.complete()
	}
}

// A client that has the whole response finds the lock free, however the handler writes it.
func TestMiddleware_CompletesTheResponse_AfterTheRelease(t *testing.T) {
	const length = 100_000
	c := client(t)
	announce := func(w http.ResponseWriter) { w.Header().Set("Content-Length", strconv.Itoa(length)) }
	for name, row := range map[string]struct {
		method string
		write  http.HandlerFunc
	}{
		"in one piece": {http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
			announce(w)
			if n, err := w.Write(make([]byte, length)); n != length || err != nil {
				t.Errorf("wrote %d, %v", n, err)
			}
			if n, err := w.Write([]byte{1}); n != 0 || !errors.Is(err, http.ErrContentLength) {
				t.Errorf("a byte too many: %d, %v", n, err)
			}
		}},
		"in pieces, flushed": {http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
			announce(w)
			w.WriteHeader(http.StatusOK)
			for range length / 100 {
				if n, err := w.Write(make([]byte, 100)); n != 100 || err != nil {
					t.Errorf("wrote %d, %v", n, err)
				}
				if err := http.NewResponseController(w).Flush(); err != nil {
					t.Error(err)
				}
			}
			w.(http.Flusher).Flush()
		}},
		"as a file": {http.MethodGet, func(w http.ResponseWriter, r *http.Request) {
			http.ServeContent(w, r, "x", time.Time{}, strings.NewReader(strings.Repeat("x", length)))
		}},
		"no body, flushed": {http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(http.StatusNoContent)
			w.(http.Flusher).Flush()
		}},
		"an empty body, flushed": {http.MethodGet, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "0")
			w.(http.Flusher).Flush()
		}},
		"HEAD, flushed": {http.MethodHead, func(w http.ResponseWriter, _ *http.Request) {
			announce(w)
			w.(http.Flusher).Flush()
		}},
	} {
		t.Run(name, func(t *testing.T) {
			bodyless := strings.HasSuffix(name, "flushed") && name != "in pieces, flushed"
			w := &watched{ResponseRecorder: httptest.NewRecorder(), bodyless: bodyless, complete: func() {
				lease, err := c.TryLock(t.Context(), "/a")
				if err != nil {
					t.Errorf("the client has the response, and the lock is held: %v", err)
					return
				}
				_ = lease.Unlock(t.Context())
			}}
			if !bodyless {
				w.length = length
			}
			h := httplock.Middleware(byPath(c), nil)(row.write)
			h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), row.method, "/a", nil))
			if got := w.Body.Len(); got != w.length || w.done == bodyless {
				t.Errorf("the client has %d bytes of %d; complete: %v", got, w.length, w.done)
			}
		})
	}
}

// What a handler that panicked has announced must not look whole.
func TestMiddleware_OfAHandlerThatPanics_SendsNoLastByte(t *testing.T) {
	c, w := client(t), httptest.NewRecorder()
	h := httplock.Middleware(byPath(c), nil)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Length", "3")
		_, _ = w.Write([]byte("abc"))
		panic(http.ErrAbortHandler)
	}))
	func() {
		defer func() { _ = recover() }()
		h.ServeHTTP(w, httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/a", nil))
	}()
	if got := w.Body.String(); got != "ab" {
		t.Errorf("the client has %q", got)
	}
}

// A client that asks again as soon as it has the response is never told that another request is being served.
func TestMiddleware_BehindAServer_TheNextRequestFindsTheLockFree(t *testing.T) {
	c := client(t)
	server := httptest.NewServer(httplock.Middleware(byPath(c), nil)(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "100000")
			_, _ = w.Write(make([]byte, 100_000))
		})))
	defer server.Close()
	for n := range 200 {
		answer, err := server.Client().Get(server.URL + "/a")
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(answer.Body)
		_ = answer.Body.Close()
		if answer.StatusCode != http.StatusOK || len(body) != 100_000 || err != nil {
			t.Fatalf("request %d: %s, %d bytes, %v", n, answer.Status, len(body), err)
		}
	}
}

// A connection can be taken over only where the server can give it, and a handler asks for that by the type.
func TestMiddleware_LetsTheConnectionBeTakenOver_WhereItCanBe(t *testing.T) {
	c := client(t)
	server := httptest.NewServer(httplock.Middleware(byPath(c), nil)(http.HandlerFunc(
		func(w http.ResponseWriter, _ *http.Request) {
			conn, _, err := w.(http.Hijacker).Hijack()
			if err != nil {
				t.Error(err)
				return
			}
			_, _ = io.WriteString(conn, "HTTP/1.1 200 OK\r\nContent-Length: 2\r\nConnection: close\r\n\r\nok")
			_ = conn.Close()
		})))
	defer server.Close()
	answer, err := server.Client().Get(server.URL + "/a")
	if err != nil {
		t.Fatal(err)
	}
	defer answer.Body.Close()
	if body, err := io.ReadAll(answer.Body); string(body) != "ok" || err != nil {
		t.Errorf("got %q, %v", body, err)
	}
	get(httplock.Middleware(byPath(c), nil)(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if _, ok := w.(http.Hijacker); ok {
			t.Error("a writer without a connection says that it can be taken over")
		}
	})), t.Context(), "/b")
}

func TestMiddleware_WithoutAMutex_LocksNothing_AndRefuseAnswersInItsOwnWay(t *testing.T) {
	c := client(t)
	lease, err := c.Lock(t.Context(), "/a")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = lease.Unlock(t.Context()) }()
	free := httplock.Middleware(func(*http.Request) *interlock.Mutex { return nil }, nil)(nothing)
	if r := get(free, t.Context(), "/a"); r.StatusCode != http.StatusOK {
		t.Errorf("a request that needs no lock is answered %d", r.StatusCode)
	}
	refuse := func(w http.ResponseWriter, _ *http.Request, status int, err error) {
		w.WriteHeader(status)
		fmt.Fprint(w, errors.Is(err, interlock.ErrHeld))
	}
	own := httplock.Middleware(byPath(c), &httplock.Options{Refuse: refuse})(nothing)
	r := get(own, t.Context(), "/a")
	body, err := io.ReadAll(r.Body)
	if r.StatusCode != http.StatusConflict || string(body) != "true" || err != nil {
		t.Errorf("answered %d %q (%v)", r.StatusCode, body, err)
	}
}

func TestMiddleware_WithAStatusThatIsNoRefusal_Panics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a refusal with 200 is accepted")
		}
	}()
	httplock.Middleware(nil, &httplock.Options{HeldStatus: http.StatusOK})
}

func TestNew_WithoutWhatItNeeds_PanicsAtOnce(t *testing.T) {
	for what, construct := range map[string]func(){
		"needs the function": func() { httplock.Middleware(nil, nil) },
	} {
		func() {
			defer func() {
				if said, _ := recover().(string); !strings.Contains(said, what) {
					t.Errorf("it said %q, want %q", said, what)
				}
			}()
			construct()
		}()
	}
}
