package console_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock/console"
	"github.com/interlock-go/interlock/console/board"
	"github.com/interlock-go/interlock/drivertest/faulty"
)

func TestEvents_BeginWithTheBoardAndThenTellChanges(t *testing.T) {
	w := newWorld(t, &console.Options{URL: "mem://x"})
	w.lock("first")
	s := w.watch()
	m, err := s.next()
	if err != nil || m.event != "board" || !strings.Contains(string(m.data), `"url":"mem://x"`) {
		t.Fatalf("%s %s, %v", m.event, m.data, err)
	}
	var b board.Board
	if err := json.Unmarshal(m.data, &b); err != nil || len(b.Locks) != 1 || b.Locks[0].Name != "first" {
		t.Fatalf("%v: %+v", err, b)
	}
	second := w.lock("second")
	now, _ := s.until(&b, "a second lock", func(b *board.Board) bool { return len(b.Locks) == 2 })
	if now.Events[0].Event != board.Held || now.Events[0].Name != "second" {
		t.Errorf("%+v", now.Events)
	}
	if err := second.Unlock(t.Context()); err != nil {
		t.Fatal(err)
	}
	now, _ = s.until(now, "its end", func(b *board.Board) bool { return len(b.Locks) == 1 })
	if now.Events[0].Event != board.Released {
		t.Errorf("%+v", now.Events)
	}
}

func TestEvents_ResumeAfterTheLastOne(t *testing.T) {
	w := newWorld(t, nil)
	s := w.watch()
	has, id := s.until(nil, "the board", func(*board.Board) bool { return true })
	s.body.Close()
	w.lock("a")
	s = w.watch("Last-Event-ID", id)
	m, err := s.next()
	if err != nil || m.event != "change" {
		t.Errorf("%s %s, %v", m.event, m.data, err)
	}
	for name, id := range map[string]string{
		"of another console": "XXXXXXXXXX-" + id[strings.Index(id, "-")+1:], "of later": id + "0000000", "no id": "x",
	} {
		s := w.watch("Last-Event-ID", id)
		if m, err := s.next(); err != nil || m.event != "board" {
			t.Errorf("%s: %s %s, %v", name, m.event, m.data, err)
		}
	}
	_ = has
}

func TestEvents_OfAnEngineThatIsAway_KeepTheLastGoodBoard(t *testing.T) {
	w := newWorld(t, nil)
	w.lock("a")
	s := w.watch()
	has, _ := s.until(nil, "the lock", func(b *board.Board) bool { return len(b.Locks) == 1 })
	w.faults.Rules(faulty.Rule{Op: faulty.Locks, Err: errors.New("the engine is away")})
	has, _ = s.until(has, "a stale board", func(b *board.Board) bool { return b.Stale })
	if len(has.Locks) != 1 || !strings.Contains(has.Error, "the engine is away") || !has.Tried.After(has.Taken) {
		t.Errorf("%+v", has)
	}
	w.get("/api/board").want(t, http.StatusOK, `"stale":true`)
	w.faults.Rules()
	s.until(has, "a good board", func(b *board.Board) bool { return !b.Stale && b.Error == "" })
}

// reader is a connection whose other end takes one write after the other, when it wants.
type reader struct {
	header http.Header
	writes chan string
	gone   <-chan struct{}
}

func eventsRequest(ctx context.Context) *http.Request {
	return httptest.NewRequestWithContext(ctx, http.MethodGet, "http://localhost/api/events", http.NoBody)
}

func (r *reader) Header() http.Header { return r.header }
func (r *reader) WriteHeader(int)     {}
func (r *reader) Flush()              {}

func (r *reader) Write(b []byte) (int, error) {
	select {
	case r.writes <- string(b):
		return len(b), nil
	case <-r.gone:
		return 0, net.ErrClosed
	}
}

// A browser that does not read gets no backlog: what it has missed is one message.
func TestEvents_ForASlowReader_AreOneMessageForAllThatItMissed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &console.Options{Interval: time.Second})
		ctx, leave := context.WithCancel(t.Context())
		r := &reader{make(http.Header), make(chan string), ctx.Done()}
		ended := make(chan struct{})
		go func() {
			defer close(ended)
			w.console.ServeHTTP(r, eventsRequest(ctx))
		}()
		if first := <-r.writes; first != "retry: 2000\n\n" {
			t.Error(first)
		}
		if board := <-r.writes; !strings.HasPrefix(board, "event: board\n") {
			t.Error(board)
		}
		time.Sleep(1500 * time.Millisecond) // the next message is on its way, and is not read
		for i := range 300 {
			w.lock(strconv.Itoa(i))
			time.Sleep(time.Second)
		}
		if late := <-r.writes; !strings.Contains(late, `"changed":[]`) {
			t.Error(late)
		}
		all := <-r.writes
		if n := strings.Count(all, `"id":"mutex/`); n != 300 || !strings.HasPrefix(all, "event: change\n") {
			t.Errorf("%d locks in %.100s", n, all)
		}
		began := time.Now()
		if next := <-r.writes; time.Since(began) > time.Second || strings.Contains(next, `"event":"held"`) {
			t.Errorf("after %v: %.300s", time.Since(began), next)
		}
		leave()
		<-ended
	})
}

// While the engine does not answer there is nothing to tell, and yet neither end must think that the other has gone.
func TestEvents_SayThatTheyAreThere(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, &console.Options{Timeout: time.Hour, Interval: time.Minute})
		ctx, leave := context.WithCancel(t.Context())
		defer leave()
		r := &reader{make(http.Header), make(chan string), ctx.Done()}
		w.faults.Pause()
		go w.console.ServeHTTP(r, eventsRequest(ctx))
		beat := func(wanted string) {
			t.Helper()
			began := time.Now()
			if beat := <-r.writes; !strings.HasPrefix(beat, wanted) || time.Since(began) != 10*time.Second {
				t.Errorf("after %v: %q", time.Since(began), beat)
			}
		}
		<-r.writes
		beat("event: alive\n")
		beat("event: alive\n")
		w.faults.Resume()
		if board := <-r.writes; !strings.HasPrefix(board, "event: board\n") {
			t.Error(board)
		}
		beat("event: change\n")
		beat("event: change\n")
	})
}

// A server has deadlines for requests, which a stream outlasts.
func TestEvents_OutlastTheDeadlinesOfTheServer(t *testing.T) {
	for _, protocol := range []string{"HTTP/1.1", "HTTP/2.0"} {
		t.Run(protocol, func(t *testing.T) {
			t.Parallel()
			w := newWorld(t, &console.Options{Interval: 20 * time.Millisecond})
			const deadline = 3 * time.Second // also for the handshake, on a machine with other work
			server := httptest.NewUnstartedServer(w.console)
			server.Config.ReadTimeout, server.Config.WriteTimeout = deadline, deadline
			server.EnableHTTP2 = protocol == "HTTP/2.0"
			server.StartTLS()
			defer server.Close()
			defer w.console.Close() // so that the stream ends, which the server waits for
			r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/api/events", http.NoBody)
			if err != nil {
				t.Fatal(err)
			}
			resp, err := server.Client().Transport.RoundTrip(r)
			if err != nil {
				t.Fatal(err)
			}
			defer resp.Body.Close()
			if resp.Proto != protocol {
				t.Errorf("%s", resp.Proto)
			}
			s := &events{w, resp.Body, bufio.NewReader(resp.Body)}
			for began := time.Now(); time.Since(began) < deadline+time.Second; {
				if _, err := s.next(); err != nil {
					t.Fatalf("after %v: %v", time.Since(began), err)
				}
			}
		})
	}
}

func TestClose_EndsStreamsAtOnce(t *testing.T) {
	w := newWorld(t, &console.Options{Interval: time.Hour})
	s := w.watch()
	if _, err := s.next(); err != nil {
		t.Fatal(err)
	}
	w.console.Close()
	if m, err := s.next(); err == nil {
		t.Errorf("%s %s", m.event, m.data)
	}
	w.get("/api/board").want(t, http.StatusServiceUnavailable, "closed")
}

func TestEvents_AreForSoManyBrowsersAndNoMore(t *testing.T) {
	w := newWorld(t, &console.Options{Interval: time.Hour})
	var open []*events
	for range 256 {
		open = append(open, w.watch())
	}
	w.get("/api/events").want(t, http.StatusServiceUnavailable, "256")
	open[0].body.Close()
	for end := time.Now().Add(20 * time.Second); ; {
		r, err := http.DefaultTransport.RoundTrip(w.request(http.MethodGet, "/api/events", ""))
		if err != nil {
			t.Fatal(err)
		}
		r.Body.Close()
		if r.StatusCode == http.StatusOK {
			return
		}
		if time.Now().After(end) {
			t.Fatal("no place became free")
		}
		<-time.After(5 * time.Millisecond)
	}
}
