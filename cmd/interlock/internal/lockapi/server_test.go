package lockapi

import (
	"context"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/fence"
	"github.com/interlock-go/interlock/interlocktest"
	"github.com/interlock-go/interlock/webguard"
)

func TestLease_IsTakenRenewedShownAndReleased(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	before := time.Now()
	a := w.take(`{"name":"a/b c","ttl":30,"label":"import"}`)
	if a.Name != "a/b c" || a.State != "held" || a.Remaining <= 29 || a.Remaining > 30 || a.Wanted {
		t.Errorf("it is %+v", a.leaseObject)
	}
	if until, err := time.Parse(time.RFC3339, a.Deadline); err != nil || until.Before(before.Add(29*time.Second)) {
		t.Errorf("the deadline is %s, %v", a.Deadline, err)
	}
	stamp, err := fence.FromHeader(a.Header)
	if err != nil || tokenText(stamp.Token) != a.Token || a.Header.Get(fence.Header) != a.Stamp {
		t.Errorf("the stamp is %v, %v, in the body %q", stamp, err, a.Stamp)
	}
	path := "/v1/leases/" + a.ID
	if at := a.Header.Get("Location"); at != path {
		t.Errorf("Location is %q", at)
	}
	lock := w.ask(http.StatusOK, http.MethodGet, "/v1/locks?name=a%2Fb%20c", "")
	if !lock.Held || !strings.Contains(lock.Body, `"label":"local: import"`) {
		t.Errorf("the lock is %s", lock.Body)
	}
	b := w.ask(http.StatusOK, http.MethodPost, path+"/renew", `{"ttl":100}`)
	if b.Remaining <= 98 || b.Token != a.Token || b.Header.Get(fence.Header) != a.Stamp {
		t.Errorf("renewed it is %+v", b.leaseObject)
	}
	if b := w.ask(http.StatusOK, http.MethodPost, path+"/renew", ""); b.Remaining <= 98 {
		t.Errorf("a renewal by less than is left leaves %v", b.Remaining)
	}
	held := w.ask(http.StatusConflict, http.MethodPost, "/v1/leases", `{"name":"a/b c"}`)
	if held.Type != "held" || held.Holder == nil || held.Holder.Token != a.Token ||
		held.Header.Get("Retry-After") == "" {
		t.Errorf("refused with %s", held.Body)
	}
	w.ask(http.StatusNoContent, http.MethodDelete, path, "")
	w.ask(http.StatusNoContent, http.MethodDelete, path, "") // the client did not hear the answer
	if b := w.ask(http.StatusOK, http.MethodGet, path, ""); b.State != "released" || b.Stamp != "" ||
		b.Header.Get(fence.Header) != "" {
		t.Errorf("released it is %s", b.Body)
	}
	if b := w.ask(http.StatusGone, http.MethodPost, path+"/renew", ""); b.Type != "released" {
		t.Errorf("a renewal after it is %s", b.Body)
	}
	if lock := w.ask(http.StatusOK, http.MethodGet, "/v1/locks?name=a%2Fb%20c", ""); lock.Held {
		t.Errorf("it is held still: %s", lock.Body)
	}
}

// A client that has not heard the answer repeats its request. It gets the same lease, and no second one.
func TestAcquire_Repeated_IsTheSameLease(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	const id = "nightly-0f3c9a7be1"
	body := func(name, more string) string { return `{"name":"` + name + `","id":"` + id + `"` + more + `}` }
	holder := w.take(`{"name":"n"}`)
	waiting := w.waits("n", body("n", `,"wait":60`))
	if b := w.ask(http.StatusConflict, http.MethodPost, "/v1/leases", body("n", `,"wait":60`)); b.Type != "id" {
		t.Errorf("while the first one waits: %s", b.Body)
	}
	w.ask(http.StatusNoContent, http.MethodDelete, "/v1/leases/"+holder.ID, "")
	a := <-waiting
	if a.Status != http.StatusCreated || a.ID != id {
		t.Fatalf("the first one is %d %s", a.Status, a.Body)
	}
	b := w.ask(http.StatusOK, http.MethodPost, "/v1/leases", body("n", ""))
	if b.Token != a.Token || b.State != "held" {
		t.Errorf("repeated it is %s", b.Body)
	}
	w.ask(http.StatusConflict, http.MethodPost, "/v1/leases", body("other", ""))
	w.ask(http.StatusNoContent, http.MethodDelete, "/v1/leases/"+id, "")
	if b := w.ask(http.StatusConflict, http.MethodPost, "/v1/leases", body("n", "")); b.Type != "id" {
		t.Errorf("after the release: %s", b.Body)
	}
	w.take(`{"name":"n"}`) // nothing was left
}

// The server never renews for a client: it would keep the lock of one that has died.
func TestClient_ThatStopsRenewing_LosesItsLeaseAtTheDeadline(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	a := w.take(`{"name":"n","ttl":1}`)
	next, closes := w.watch(a.ID)
	defer closes()
	if event, _ := next(); event != "held" {
		t.Errorf("the first event is %q", event)
	}
	b := w.ask(http.StatusCreated, http.MethodPost, "/v1/leases", `{"name":"n","ttl":30,"wait":20}`)
	if until, err := time.Parse(time.RFC3339, a.Deadline); err != nil || time.Now().Before(until) {
		t.Errorf("another has it before the deadline %s", a.Deadline)
	}
	if b.Token <= a.Token || b.Remaining < 28 {
		t.Errorf("the next one is %+v after token %s", b.leaseObject, a.Token)
	}
	event, o := next()
	if event == "wanted" { // by the one that waits
		event, o = next()
	}
	if event != "lost" || o.State != "lost" || o.Reason != string(interlock.LostExpired) {
		t.Errorf("the event is %q %+v", event, o)
	}
	if event, _ := next(); event != "end" {
		t.Errorf("after the loss there is %q", event)
	}
	for method, path := range map[string]string{http.MethodPost: "/renew", http.MethodDelete: ""} {
		if c := w.ask(http.StatusGone, method, "/v1/leases/"+a.ID+path, ""); c.Type != "lost" || c.Reason != "expired" {
			t.Errorf("%s of the lost lease: %s", method, c.Body)
		}
	}
	if c := w.ask(http.StatusOK, http.MethodGet, "/v1/leases/"+b.ID, ""); c.State != "held" {
		t.Errorf("what was done with the lost lease ended the next: %s", c.Body)
	}
}

// The reading and writing of a request have shorter limits than this wait.
func TestAcquire_Waits_AndTellsTheHolder(t *testing.T) {
	t.Parallel()
	w := serve(t, 2*time.Second, nil)
	a := w.take(`{"name":"n"}`)
	next, closes := w.watch(a.ID)
	defer closes()
	next()
	began := time.Now()
	b := w.ask(http.StatusConflict, http.MethodPost, "/v1/leases", `{"name":"n","wait":3}`)
	if took := time.Since(began); b.Type != "held" || took < 3*time.Second {
		t.Errorf("after %v: %s", took, b.Body)
	}
	if event, o := next(); event != "wanted" || !o.Wanted {
		t.Errorf("the event is %q %+v", event, o)
	}
	waiting := w.waits("n", `{"name":"n","wait":60}`)
	w.ask(http.StatusNoContent, http.MethodDelete, "/v1/leases/"+a.ID, "")
	if event, _ := next(); event != "released" {
		t.Errorf("the event is %q", event)
	}
	if c := <-waiting; c.Status != http.StatusCreated || c.Wanted {
		t.Errorf("the next one is %d %s", c.Status, c.Body)
	}
}

// The wait is one for the lock, and the engine may take longer to answer.
func TestAcquire_WithAShortWait_HearsTheEngine(t *testing.T) {
	t.Parallel()
	store := interlocktest.New(t, nil)
	store.SetDelay(100 * time.Millisecond)
	w := serveOn(t, time.Minute, store.Client(nil), nil)
	a := w.take(`{"name":"n","wait":0.01}`)
	if b := w.ask(http.StatusConflict, http.MethodPost, "/v1/leases", `{"name":"n"}`); b.Type != "held" {
		t.Errorf("the problem is %s", b.Body)
	}
	w.ask(http.StatusNoContent, http.MethodDelete, "/v1/leases/"+a.ID, "")
}

// A client of another server is in another process, for the engine.
func TestWatch_TellsOfClientsOfOtherServers(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t, nil), newWorld(t, nil)
	a := w.take(`{"name":"n"}`)
	next, closes := w.watch(a.ID)
	defer closes()
	next()
	waiting := other.waits("n", `{"name":"n","wait":60}`)
	w.until("news of the waiting client", func() bool {
		return w.ask(http.StatusOK, http.MethodPost, "/v1/leases/"+a.ID+"/renew", `{"ttl":3600}`).Wanted
	})
	if event, _ := next(); event != "wanted" {
		t.Errorf("the event is %q", event)
	}
	other.ask(http.StatusNotFound, http.MethodDelete, "/v1/leases/"+a.ID, "") // leases are at one server
	w.ask(http.StatusNoContent, http.MethodDelete, "/v1/leases/"+a.ID, "")
	if c := <-waiting; c.Status != http.StatusCreated {
		t.Errorf("the next one is %d %s", c.Status, c.Body)
	}
}

func TestClient_ThatGoesWhileItWaits_LeavesNothing(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &Options{MaxLeases: 2})
	a := w.take(`{"name":"n"}`)
	ctx, cancel := context.WithCancel(t.Context())
	gone := make(chan struct{})
	go func() { // ends with ctx
		defer close(gone)
		r, err := w.client.Do(w.request(ctx, http.MethodPost, "/v1/leases", `{"name":"n","wait":600}`))
		if err == nil {
			r.Body.Close()
		}
	}()
	w.until("waiting client", func() bool { return w.waiters("n") > 0 })
	if b := w.ask(http.StatusServiceUnavailable, http.MethodPost, "/v1/leases", `{"name":"other"}`); b.Type != "full" {
		t.Errorf("with a lease and a wait of two: %s", b.Body)
	}
	cancel()
	<-gone
	w.until("free place", func() bool {
		return w.try(http.MethodPost, "/v1/leases", `{"name":"other"}`).Status == http.StatusCreated
	})
	w.ask(http.StatusNoContent, http.MethodDelete, "/v1/leases/"+a.ID, "")
	w.take(`{"name":"n"}`) // an ended lease makes room, and the one that has gone did not get the lock
}

// A client that is at work cannot be told that its lock is given away.
func TestClose_LeavesLocksHeld_AndEndsWaitsAndStreams(t *testing.T) {
	t.Parallel()
	w, other := newWorld(t, nil), newWorld(t, nil)
	a := w.take(`{"name":"n","ttl":2}`)
	next, closes := w.watch(a.ID)
	defer closes()
	next()
	waiting := w.waits("n", `{"name":"n","wait":600}`)
	w.server.Close()
	if b := <-waiting; b.Type != "ending" {
		t.Errorf("the one that waits is told %s", b.Body)
	}
	event, _ := next()
	if event == "wanted" {
		event, _ = next()
	}
	if event != "end" {
		t.Errorf("the stream has %q", event)
	}
	for _, q := range [][3]string{
		{http.MethodPost, "/v1/leases", `{"name":"m"}`},
		{http.MethodGet, "/v1/leases/" + a.ID},
		{http.MethodPost, "/v1/leases/" + a.ID + "/renew"},
		{http.MethodDelete, "/v1/leases/" + a.ID},
	} {
		if b := w.ask(http.StatusServiceUnavailable, q[0], q[1], q[2]); b.Type != "ending" {
			t.Errorf("%v: %s", q, b.Body)
		}
	}
	if err := w.locks.Close(); err != nil {
		t.Error(err)
	}
	other.ask(http.StatusConflict, http.MethodPost, "/v1/leases", `{"name":"n"}`)
	other.ask(http.StatusCreated, http.MethodPost, "/v1/leases", `{"name":"n","wait":20}`)
	if until, err := time.Parse(time.RFC3339, a.Deadline); err != nil || time.Now().Before(until) {
		t.Errorf("another has it before the deadline %s", a.Deadline)
	}
}

func TestTokens_LetIn_AndKeepLeasesApart(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &Options{Tokens: []webguard.Token{
		{Name: "shop", Secret: secret}, {Name: "ops", Secret: secret + "2"},
	}})
	shop, ops := "Bearer "+secret, "bearer "+secret+"2"
	const lock = `{"name":"shop/1","id":"0123456789abcdef"}`
	for _, wrong := range []string{"", secret, "Bearer", "Bearer ", "Bearer " + secret + "1", "Basic " + secret} {
		a := w.ask(http.StatusUnauthorized, http.MethodPost, "/v1/leases", lock, "Authorization", wrong)
		if a.Type != "token" || a.Header.Get("WWW-Authenticate") == "" {
			t.Errorf("%q: %s", wrong, a.Body)
		}
	}
	a := w.ask(http.StatusCreated, http.MethodPost, "/v1/leases", lock, "Authorization", shop)
	path := "/v1/leases/" + a.ID
	for _, q := range [][2]string{
		{http.MethodGet, path},
		{http.MethodDelete, path},
		{http.MethodPost, path + "/renew"},
		{http.MethodGet, path + "/events"},
	} {
		if b := w.ask(http.StatusNotFound, q[0], q[1], "", "Authorization", ops); b.Type != "lease" {
			t.Errorf("another token's %v: %s", q, b.Body)
		}
		w.ask(http.StatusUnauthorized, q[0], q[1], "")
	}
	if b := w.ask(http.StatusConflict, http.MethodPost, "/v1/leases", lock, "Authorization", ops); b.Type != "id" {
		t.Errorf("another token's id: %s", b.Body)
	}
	lockNow := w.ask(http.StatusOK, http.MethodGet, "/v1/locks?name=shop/1", "", "Authorization", ops)
	if !strings.Contains(lockNow.Body, `"label":"shop"`) {
		t.Errorf("the holder is shown as %s", lockNow.Body)
	}
	w.ask(http.StatusNoContent, http.MethodDelete, path, "", "Authorization", shop)
}

func TestServer_WithoutTokens_RefusesNamesThatMayBeAWebPages(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for host, status := range map[string]int{
		"evil.example": http.StatusMisdirectedRequest, "localhost.evil.example:7072": http.StatusMisdirectedRequest,
		"localhost:7072": http.StatusOK, "127.0.0.1": http.StatusOK, "[::1]:7072": http.StatusOK,
		"[::1]": http.StatusOK,
	} {
		r := w.request(t.Context(), http.MethodGet, "/v1/locks?name=n", "")
		r.Host = host
		response, err := w.client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != status {
			t.Errorf("%s: %s, want %d", host, response.Status, status)
		}
	}
}

func TestRequests_ThatAreWrong_AreToldWhy(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	a := w.take(`{"name":"n"}`)
	acquire, renew := "/v1/leases", "/v1/leases/"+a.ID+"/renew"
	for _, c := range []struct {
		status             int
		path, body, detail string
	}{
		{http.StatusBadRequest, acquire, `{"name":""}`, "name"},
		{http.StatusBadRequest, acquire, `{"name":"` + strings.Repeat("n", 513) + `"}`, "512"},
		{http.StatusBadRequest, acquire, `{"name":"m","ttl":0.5}`, "ttl must be from 1 to 86400 seconds"},
		{http.StatusBadRequest, acquire, `{"name":"m","ttl":1e300}`, "ttl must be"},
		{http.StatusBadRequest, acquire, `{"name":"m","ttl":"30s"}`, "ttl"},
		{http.StatusBadRequest, acquire, `{"name":"m","wait":-1}`, "wait must be from 0 to 600 seconds"},
		{http.StatusBadRequest, acquire, `{"name":"m","label":"` + strings.Repeat("l", 129) + `"}`, "label"},
		{http.StatusBadRequest, acquire, `{"name":"m","tll":30}`, "tll"},
		{http.StatusBadRequest, acquire, `{"name":"m","id":"short"}`, "id must be 16 to 64"},
		{http.StatusBadRequest, acquire, `{"name":"m"} {}`, "more than one"},
		{http.StatusBadRequest, acquire, `[]`, "object"},
		{http.StatusUnsupportedMediaType, acquire, ``, "application/json"},
		{http.StatusBadRequest, renew, `{"ttl":0}`, "ttl must be"},
		{http.StatusRequestEntityTooLarge, acquire, `{"name":"` + strings.Repeat("n", maxBody) + `"}`, "8192"},
		{http.StatusRequestEntityTooLarge, renew, strings.Repeat(" ", maxBody+1), "8192"},
	} {
		if b := w.ask(c.status, http.MethodPost, c.path, c.body); !strings.Contains(b.Detail, c.detail) {
			t.Errorf("%.40s: %s, want %q", c.body, b.Detail, c.detail)
		}
	}
	for _, path := range []string{acquire, renew} {
		w.ask(http.StatusUnsupportedMediaType, http.MethodPost, path, `{"name":"m"}`, "Content-Type", "text/plain")
	}
	w.ask(http.StatusBadRequest, http.MethodGet, "/v1/locks", "")
	w.ask(http.StatusNotFound, http.MethodGet, "/v1/leases/none", "")
	w.ask(http.StatusNotFound, http.MethodGet, "/v2", "")
	b := w.ask(http.StatusMethodNotAllowed, http.MethodPut, "/v1/leases/"+a.ID, "")
	if allow := b.Header.Get("Allow"); allow != "GET, DELETE" {
		t.Errorf("Allow is %q", allow)
	}
}

func TestServer_BoundsStreams(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &Options{MaxStreams: 1})
	a := w.take(`{"name":"n"}`)
	next, closes := w.watch(a.ID)
	next()
	if b := w.ask(http.StatusServiceUnavailable, http.MethodGet, "/v1/leases/"+a.ID+"/events", ""); b.Type != "full" {
		t.Errorf("the second stream is told %s", b.Body)
	}
	closes()
	w.until("free stream", func() bool { return len(w.server.streams) == 0 })
	next, closes = w.watch(a.ID)
	defer closes()
	w.ask(http.StatusNoContent, http.MethodDelete, "/v1/leases/"+a.ID, "")
	for event := ""; event != "released"; {
		if event, _ = next(); event == "end" {
			t.Fatal("the release was not told")
		}
	}
	w.until("free stream", func() bool { return len(w.server.streams) == 0 })
	next, closes = w.watch(a.ID) // one that comes after the end
	defer closes()
	if event, _ := next(); event != "released" {
		t.Errorf("afterwards the event is %q", event)
	}
}

// A stream outlives the server's limits for a request.
func TestStream_StaysOpen(t *testing.T) {
	t.Parallel()
	w := serve(t, 2*time.Second, nil)
	a := w.take(`{"name":"n","ttl":3}`)
	next, closes := w.watch(a.ID)
	defer closes()
	next()
	if event, _ := next(); event != "lost" {
		t.Errorf("after three seconds the event is %q", event)
	}
}

// A page of another site sends no JSON unasked, but a request without a body is one too.
func TestServer_RefusesWhatOtherSitesSend(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	path := "/v1/leases/" + w.take(`{"name":"n"}`).ID
	for _, q := range [][2]string{
		{http.MethodPost, path + "/renew"},
		{http.MethodDelete, path},
		{http.MethodGet, path},
		{http.MethodGet, path + "/events"},
		{http.MethodGet, "/v1/locks?name=n"},
	} {
		if a := w.ask(http.StatusForbidden, q[0], q[1], "", "Sec-Fetch-Site", "cross-site"); a.Type != "origin" {
			t.Errorf("%v: %s", q, a.Body)
		}
	}
	w.ask(http.StatusForbidden, http.MethodDelete, path, "", "Origin", "https://evil.example")
	w.ask(http.StatusOK, http.MethodGet, descriptionPath, "", "Sec-Fetch-Site", "cross-site") // a link
	w.ask(http.StatusNoContent, http.MethodDelete, path, "")
}

// Clients are not written in Go: what is wrong is told in the words of openapi.json, whose names are taken as they are.
func TestBody_IsTakenAsDescribed_AndMistakesAreToldInItsWords(t *testing.T) {
	t.Parallel()
	w := newWorld(t, nil)
	for body, says := range map[string]string{
		`{"name":"n","TTL":5}`:             `the field "TTL" is unknown`,
		`{"Name":"n"}`:                     `the field "Name" is unknown`,
		`{"name":"n","name":"m"}`:          "there twice",
		`{"name":"n","ttl":"5"}`:           "ttl must be a number",
		`{"name":"n","wait":true}`:         "wait must be a number",
		`{"name":"n","ttl":1e999}`:         "ttl must be a number",
		`{"name":5}`:                       "name must be a string",
		`{"name":"n","label":{"a":1}}`:     "label must be a string",
		`["n"]`:                            "must be a JSON object",
		`"n"`:                              "must be a JSON object",
		`{"name":"n"`:                      "ends in the middle",
		`{"name":"n",}`:                    "is not JSON",
		`name=n`:                           "is not JSON",
		`{"name":"n"} {"name":"m"}`:        "more than one",
		`{"name":"n","ttl":5,"more":null}`: `the field "more" is unknown`,
	} {
		a := w.ask(http.StatusBadRequest, http.MethodPost, "/v1/leases", body)
		if a.Type != "request" || !strings.Contains(a.Detail, says) {
			t.Errorf("%s: %q, want %q", body, a.Detail, says)
		}
		for _, word := range []string{"Go ", "struct", "float64", "unmarshal", "json:"} {
			if strings.Contains(a.Detail, word) {
				t.Errorf("%s: %q is Go's", body, a.Detail)
			}
		}
	}
	w.ask(http.StatusCreated, http.MethodPost, "/v1/leases", ` {"name":"n","ttl":5,"wait":null,"label":"l"} `)
}

func TestLabelOf_KeepsToTheLimitOfEveryEngine(t *testing.T) {
	long, letters := strings.Repeat("n", 300), strings.Repeat("é", 150)
	for _, by := range []string{"ann", long[:128], long, letters} {
		for _, label := range []string{"", "l", long[:128]} {
			got := labelOf(by, label)
			if len(got) > 255 || !utf8.ValidString(got) || !strings.HasSuffix(got, label) ||
				!strings.HasPrefix(got, by[:2]) {
				t.Errorf("%q, %q: %q", by, label, got)
			}
		}
	}
}

func TestServer_ServesItsDescription(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &Options{Tokens: []webguard.Token{{Name: "a", Secret: secret}}})
	if a := w.ask(http.StatusOK, http.MethodGet, descriptionPath, ""); a.Body != string(openAPI) {
		t.Error("it is not openapi.json")
	}
}

// Ended leases do not stay for ever, and go as soon as their place is needed.
func TestTable_ForgetsEndedLeases(t *testing.T) {
	t.Parallel()
	w := newWorld(t, &Options{MaxLeases: 3})
	for range 10 {
		a := w.take(`{"name":"n"}`)
		w.ask(http.StatusNoContent, http.MethodDelete, "/v1/leases/"+a.ID, "")
	}
	w.server.table.mu.Lock()
	defer w.server.table.mu.Unlock()
	if n := len(w.server.table.leases); n > 3 {
		t.Errorf("%d leases are remembered", n)
	}
	if names := slices.Collect(maps.Keys(w.server.table.latest)); len(names) > 1 {
		t.Errorf("names %v are remembered", names)
	}
}
