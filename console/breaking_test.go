package console_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console"
	"github.com/interlock-go/interlock/console/board"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/drivertest/faulty"
	"github.com/interlock-go/interlock/memlock"
)

func breakBody(name string, token uint64, typed string) string {
	return fmt.Sprintf(`{"kind":"mutex","name":%q,"token":"%d","typed":%q}`, name, token, typed)
}

func (w *world) breaks(body string, headers ...string) reply {
	w.Helper()
	return w.do(w.request(http.MethodPost, "/api/break", body, append(headers, "Content-Type", "application/json")...))
}

// lines is an audit file, or one that cannot be written.
type lines struct {
	mu   sync.Mutex
	text bytes.Buffer
	full error
}

func (l *lines) Write(b []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.full != nil {
		return 0, l.full
	}
	return l.text.Write(b)
}

// entries returns what was written.
func (l *lines) entries(t *testing.T) (all []console.AuditEntry) {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		var e console.AuditEntry
		if err := json.Unmarshal([]byte(line), &e); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		all = append(all, e)
	}
	return all
}

func TestBreak_EndsTheHoldAndIsWrittenDown(t *testing.T) {
	audit := &lines{}
	w := newWorld(t, &console.Options{AllowBreak: true, Audit: audit, Prefix: "shown"})
	l := w.lock("shown/a b")
	s := w.watch()
	has, _ := s.until(nil, "the lock", func(b *board.Board) bool { return len(b.Locks) == 1 })
	if !has.Knows.Break.OK {
		t.Errorf("%+v", has.Knows)
	}
	w.breaks(breakBody("shown/a b", l.Token(), "shown/a b")).want(t, http.StatusOK, `{"broken":true}`)
	<-l.Lost()
	var lost *interlock.LostError
	if !errors.As(l.Err(), &lost) || lost.Reason != interlock.LostBroken {
		t.Errorf("the holder hears of %v", l.Err())
	}
	has, _ = s.until(has, "its end", func(b *board.Board) bool { return len(b.Locks) == 0 })
	if len(has.Events) != 1 || has.Events[0].Event != board.Broken || has.Events[0].Why != "by local" ||
		has.Events[0].Owner != l.Owner() {
		t.Errorf("%+v", has.Events)
	}
	got := audit.entries(t)
	if len(got) != 2 || got[0].Result != "asked" || got[1].Result != "broken" || got[0].ID != got[1].ID ||
		got[1].Token != l.Token() || got[1].Who != "local" || got[1].Client != "here" || got[1].Owner != l.Owner() ||
		got[1].Name != "shown/a b" || time.Since(got[1].Time) > time.Minute || got[1].From == "" {
		t.Errorf("%+v", got)
	}
	var shown struct{ Entries []console.AuditEntry }
	w.get("/api/audit").into(t, &shown)
	if len(shown.Entries) != 2 || shown.Entries[0] != got[1] {
		t.Errorf("%+v", shown)
	}
}

func TestBreak_IsRefusedUnlessTheNameIsTypedAndTheTokenIsThere(t *testing.T) {
	audit := &lines{}
	w := newWorld(t, &console.Options{AllowBreak: true, Audit: audit})
	l := w.lock("stock")
	for body, status := range map[string]int{
		breakBody("stock", l.Token(), "stocks"):                400,
		breakBody("stock", l.Token(), ""):                      400,
		breakBody("stock", l.Token(), "Stock"):                 400,
		breakBody("stock", 0, "stock"):                         400,
		`{"kind":"mutex","name":"stock","typed":"stock"}`:      400,
		`{"kind":"mutex","name":"stock","token":7,"typed":""}`: 400, // a number: JavaScript has rounded it
		`{`:                                  400,
		"":                                   400,
		breakBody("", l.Token(), ""):         400,
		strings.Repeat(" ", 70000) + "{}":    400,
		breakBody("stock", 1, "stock"):       409, // a holder who has gone
		breakBody("free", l.Token(), "free"): 409,
		`{"kind":"latch","name":"x","token":"1","typed":"x"}`: 501,
	} {
		if got := w.breaks(body); got.StatusCode != status || !strings.Contains(got.body, `"error":"`) {
			t.Errorf("%.80s: %d %s, want %d", body, got.StatusCode, got.body, status)
		}
	}
	if l.Err() != nil {
		t.Errorf("the hold has ended: %v", l.Err())
	}
	for _, e := range audit.entries(t) {
		if known := e.Result == "refused" || e.Result == "failed"; e.Result != "asked" && (!known || e.Error == "") {
			t.Errorf("%+v", e)
		}
	}
}

func TestBreak_IsForThoseWhoSaidSo(t *testing.T) {
	audit := &lines{}
	w := newWorld(t, &console.Options{Audit: audit})
	l := w.lock("a")
	w.breaks(breakBody("a", l.Token(), "a")).want(t, http.StatusForbidden, "--allow-break")
	var b board.Board
	w.get("/api/board").into(t, &b)
	if b.Knows.Break.OK || !strings.Contains(b.Knows.Break.Why, "--allow-break") {
		t.Errorf("%+v", b.Knows.Break)
	}
	if got := audit.entries(t); len(got) != 1 || got[0].Result != "refused" || l.Err() != nil {
		t.Errorf("%+v, %v", got, l.Err())
	}
}

// What cannot be written down is not done.
func TestBreak_WithoutAnAudit_DoesNothing(t *testing.T) {
	audit := &lines{full: errors.New("the disk is full")}
	w := newWorld(t, &console.Options{AllowBreak: true, Audit: audit})
	l := w.lock("a")
	w.breaks(breakBody("a", l.Token(), "a")).want(t, http.StatusInternalServerError, "the disk is full")
	if n := w.faults.Calls(faulty.Break); n != 0 || l.Err() != nil {
		t.Errorf("the engine was asked %d times, %v", n, l.Err())
	}
}

func TestBreak_ThatTheEngineDoesNotAnswer_IsUnknown(t *testing.T) {
	audit := &lines{}
	w := newWorld(t, &console.Options{AllowBreak: true, Audit: audit, Timeout: 50 * time.Millisecond})
	l := w.lock("a")
	w.faults.Rules(faulty.Rule{Op: faulty.Break, Drop: faulty.Reply, Hang: true})
	w.breaks(breakBody("a", l.Token(), "a")).want(t, http.StatusBadGateway, "unknown: look again")
	if got := audit.entries(t); len(got) != 2 || got[1].Result != "unknown" {
		t.Errorf("%+v", got)
	}
}

func TestBreak_WithoutAFile_IsInTheLog(t *testing.T) {
	w := newWorld(t, &console.Options{AllowBreak: true})
	l := w.lock("a")
	w.breaks(breakBody("a", l.Token(), "a")).want(t, http.StatusOK, "true")
	w.console.Close()
	text := w.logged.String()
	if strings.Count(text, "console: audit") != 2 || !strings.Contains(text, "result=broken") {
		t.Error(text)
	}
}

// unbreakable is an engine whose holds nobody can end.
type unbreakable struct{ *memlock.Driver }

func (u unbreakable) Traits() driver.Traits {
	t := u.Driver.Traits()
	t.Unsupported = append(t.Unsupported, driver.Unsupported{Ability: driver.Breaking, Reason: "kill the process"})
	return t
}

func TestBreak_OnAnEngineThatCannot_SaysWhatTheEngineSays(t *testing.T) {
	w := newWorld(t, nil)
	d := unbreakable{memlock.New(nil)}
	defer d.Close()
	c, err := interlock.New(d, nil)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	page, err := console.New(c, &console.Options{AllowBreak: true, Logger: w.logger()})
	if err != nil {
		t.Fatal(err)
	}
	defer page.Close()
	w.serve(page)
	w.get("/api/board").want(t, http.StatusOK, `"break":{"ok":false,"why":"kill the process"}`)
	w.breaks(breakBody("a", 7, "a")).want(t, http.StatusNotImplemented, "kill the process")
}
