package console_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console"
	"github.com/interlock-go/interlock/console/board"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/internal/longrun"
	"github.com/interlock-go/interlock/webguard"
)

func names(b *board.Board) string {
	var all []string
	for _, l := range b.Locks {
		all = append(all, l.Name)
	}
	return strings.Join(all, " ")
}

func TestBoard_IsReadInParts(t *testing.T) {
	w := newWorld(t, nil)
	for _, name := range []string{"a1", "a2", "a3", "b1", "ä"} {
		w.lock(name)
	}
	if _, err := w.client.RWMutex("a2", nil).RLock(t.Context()); err != nil {
		t.Fatal(err)
	}
	for query, want := range map[string]string{
		"":                           "a1 a2 a2 a3 b1 ä",
		"?prefix=a":                  "a1 a2 a2 a3",
		"?prefix=a&limit=2":          "a1 a2 a2...", // two locks of one name are not parted
		"?prefix=a&after=a2&limit=2": "a3",
		"?limit=1":                   "a1...",
		"?after=a1&limit=1":          "a2 a2...",
		"?after=b1":                  "ä",
		"?after=ä":                   "",
		"?after=a":                   "a1 a2 a2 a3 b1 ä",
		"?prefix=c":                  "",
	} {
		var b board.Board
		w.get("/api/board"+query).want(t, http.StatusOK, "").into(t, &b)
		got := names(&b)
		if b.Truncated {
			got += "..."
		}
		if got != want || b.Counts.Held != 6 {
			t.Errorf("%s: got %q, want %q; %+v", query, got, want, b.Counts)
		}
	}
	w.get("/api/board?limit=x").want(t, http.StatusBadRequest, "limit")
	w.get("/api/board?limit=0").want(t, http.StatusBadRequest, "limit")
}

func TestLock_IsLookedAtNow(t *testing.T) {
	w := newWorld(t, &console.Options{Interval: time.Hour})
	w.get("/api/board").want(t, http.StatusOK, `"locks":[]`)
	l := w.lock("a b/c")
	var got board.Lock
	w.get("/api/lock?kind=mutex&name=a%20b%2Fc").want(t, http.StatusOK, "").into(t, &got)
	if got.ID != "mutex/a%20b%2Fc" || len(got.Holders) != 1 || got.Holders[0].Token != l.Token() || got.Waiters == nil {
		t.Errorf("%+v", got)
	}
	w.get("/api/lock?kind=mutex&name=free").want(t, http.StatusOK, `"holders":[]`)
	w.get("/api/lock?kind=mutex&name=").want(t, http.StatusBadRequest, `"error":`)
	w.get("/api/lock?kind=nonsense&name=a").want(t, http.StatusNotImplemented, `"error":`)
	w.faults.Rules(faulty.Rule{Op: faulty.Look, Err: errors.New("away")})
	if got := w.get("/api/lock?kind=mutex&name=a"); got.StatusCode < 400 || !strings.Contains(got.body, "away") {
		t.Errorf("%d %s", got.StatusCode, got.body)
	}
}

func TestLatch_IsAskedForByName(t *testing.T) {
	w := newWorld(t, nil)
	if _, err := w.client.Latch("started").Set(t.Context(), 3); err != nil {
		t.Fatal(err)
	}
	w.get("/api/latch?name=started").want(t, http.StatusOK, `{"name":"started","count":3}`)
	w.get("/api/latch?name=none").want(t, http.StatusOK, `"count":0`)
	w.get("/api/latch?name=").want(t, http.StatusBadRequest, `"error":`)
}

func TestDoctor_RunsOnceAtATime(t *testing.T) {
	began, goOn := make(chan struct{}), make(chan struct{})
	w := newWorld(t, &console.Options{Doctor: func(context.Context) (any, error) {
		close(began)
		<-goOn
		return map[string]string{"level": "ok"}, nil
	}})
	answers := make(chan reply)
	first := w.request(http.MethodGet, "/api/doctor", "")
	go func() {
		resp, err := http.DefaultTransport.RoundTrip(first)
		if err != nil {
			t.Error(err)
		}
		answers <- reply{Response: resp}
	}()
	<-began
	w.get("/api/doctor").want(t, http.StatusTooManyRequests, "under way")
	close(goOn)
	r := <-answers
	defer r.Body.Close()
	if r.StatusCode != http.StatusOK {
		t.Error(r.Status)
	}
	newWorld(t, nil).get("/api/doctor").want(t, http.StatusNotImplemented, "interlock doctor")
}

func TestObserver_ShowsLossesWithTheirReason(t *testing.T) {
	w := newWorld(t, nil)
	c, err := interlock.New(w.driver, &interlock.Options{Observer: w.console.Observer()})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	l, err := c.Lock(t.Context(), "a")
	if err != nil {
		t.Fatal(err)
	}
	s := w.watch()
	has, _ := s.until(nil, "the lock", func(b *board.Board) bool { return len(b.Locks) == 1 })
	if err := c.Break(t.Context(), interlock.KindMutex, "a", l.Token()); err != nil {
		t.Fatal(err)
	}
	has, _ = s.until(has, "the loss", func(b *board.Board) bool {
		return len(b.Events) > 0 && (b.Events[0].Event == board.Lost || len(b.Events) > 1)
	})
	found := false
	for _, e := range has.Events {
		found = found || e.Event == board.Lost && e.Token == l.Token() && e.Owner == l.Owner() && e.Why != "" &&
			e.After.IsZero()
	}
	if !found {
		t.Errorf("%+v", has.Events)
	}
}

func TestObserver_LeavesOutLocksWithoutThePrefix(t *testing.T) {
	w := newWorld(t, &console.Options{Prefix: "a"})
	lost := w.console.Observer().Lost
	lost(interlock.Event{Kind: interlock.KindMutex, Name: "b", Token: 1})
	lost(interlock.Event{Kind: interlock.KindMutex, Name: "ab", Token: 2})
	s := w.watch()
	has, _ := s.until(nil, "the loss", func(b *board.Board) bool { return len(b.Events) > 0 })
	if len(has.Events) != 1 || has.Events[0].Name != "ab" {
		t.Errorf("%+v", has.Events)
	}
}

func TestNew_RefusesWhatItCannotServe(t *testing.T) {
	if _, err := console.New(nil, nil); err == nil {
		t.Error("a console of no client")
	}
	w := newWorld(t, nil)
	short := []webguard.Token{{Name: "a", Secret: "short"}}
	if _, err := console.New(w.client, &console.Options{Tokens: short}); err == nil {
		t.Error("a token that can be guessed")
	}
}

func TestConsole_CanBeMountedBelowAPath(t *testing.T) {
	w := newWorld(t, &console.Options{Tokens: []webguard.Token{{Name: "ann", Secret: annsToken}}})
	mux := http.NewServeMux()
	mux.Handle("/locks/", http.StripPrefix("/locks", w.console))
	w.serve(mux)
	if to := w.get("/locks/").want(t, http.StatusSeeOther, "").Header.Get("Location"); to != "login" {
		t.Errorf("led to %q", to)
	}
	w.get("/locks/login").want(t, http.StatusOK, `action="login"`)
	w.get("/locks/api/board", "Authorization", "Bearer "+annsToken).want(t, http.StatusOK, "locks")
}

// What a look at many locks costs is printed: ten thousand in a long run.
func TestBoard_OfManyLocks_HasSmallChanges(t *testing.T) {
	n := longrun.Of(2000, 10_000)
	w := newWorld(t, &console.Options{Interval: 50 * time.Millisecond})
	c, err := interlock.New(w.driver, &interlock.Options{Lease: time.Hour}) // no renewal changes anything
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for i := range n - 1 {
		if _, err := c.Lock(t.Context(), fmt.Sprintf("order/%05d", i)); err != nil {
			t.Fatal(err)
		}
	}
	s := w.watch()
	whole, err := s.next()
	if err != nil {
		t.Fatal(err)
	}
	idle, err := s.next()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Lock(t.Context(), "one more"); err != nil {
		t.Fatal(err)
	}
	var one message
	for one = idle; !strings.Contains(string(one.data), "one more"); {
		if one, err = s.next(); err != nil {
			t.Fatal(err)
		}
	}
	var b board.Board
	w.get("/api/board?limit=1").into(t, &b)
	t.Logf("a look took %d ms; the board has %d bytes, an idle change %d, a change of one lock %d", b.TookMs,
		len(whole.data), len(idle.data), len(one.data))
	if b.Counts.Held != n || len(whole.data) < n*100 || len(idle.data) > 400 || len(one.data) > 1000 {
		t.Errorf("%d bytes, %d bytes, %d bytes: %+v", len(whole.data), len(idle.data), len(one.data), b.Counts)
	}
}
