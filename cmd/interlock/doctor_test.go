package main

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/memlock"
)

// doctorOf runs doctor with a second for it, and fails if it takes longer than that, the grace and what it needs to
// close.
func doctorOf(t *testing.T, url string, code int) (found diagnosis) {
	t.Helper()
	const timeout = time.Second
	var out, errs bytes.Buffer
	began := time.Now()
	args := []string{"doctor", url, "-o", "json", "--timeout", timeout.String()}
	got := run(context.Background(), args, strings.NewReader(""), &out, &errs,
		func(string) string { return "" })
	if took := time.Since(began); took > 2*timeout+2*doctorGrace {
		t.Errorf("it took %v with a timeout of %v", took, timeout)
	}
	if err := json.Unmarshal(out.Bytes(), &found); got != code || err != nil {
		t.Fatalf("exit %d, want %d; %v: %s%s", got, code, err, &out, &errs)
	}
	for _, f := range found.Findings {
		if f.Page == "" {
			t.Errorf("%+v has no page", f)
		}
	}
	return found
}

// wantFailed fails unless doctor has found that the check fails.
func wantFailed(t *testing.T, found diagnosis, check, says string) {
	t.Helper()
	for _, f := range found.Findings {
		if f.Check == check && f.Level == driver.LevelFail && strings.Contains(f.Detail, says) {
			return
		}
	}
	t.Errorf("%s is not said to fail with %q: %+v", check, says, found.Findings)
}

// A server that hangs takes connections, because the kernel does, and answers nothing.
func TestDoctor_OfAServerThatHangs_SaysSoInTime(t *testing.T) {
	silent, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { silent.Close() })
	for _, scheme := range []string{"redis", "redis+cluster", "redlock", "zk", "etcd", "mysql", "postgres"} {
		t.Run(scheme, func(t *testing.T) {
			t.Parallel()
			hosts := silent.Addr().String()
			switch scheme {
			case "redlock":
				hosts += ",127.0.0.1:1,127.0.0.1:2"
			case "mysql", "postgres":
				hosts = "me@" + hosts + "/db"
			}
			found := doctorOf(t, scheme+"://"+hosts, 2)
			wantFailed(t, found, "reach", "")
		})
	}
}

func TestDoctor_OfAnEngineThatHangsLater_SaysWhatHangs(t *testing.T) {
	w := newWorld(t)
	w.control.Pause()
	defer w.control.Resume()
	found := doctorOf(t, "faulty://"+w.name, 2)
	wantFailed(t, found, "lock", "half of what was left of --timeout")
}

func TestConsoleDoctor_OfAnEngineThatHangs_AnswersInTime(t *testing.T) {
	w := newWorld(t)
	a := &app{stderr: io.Discard, url: "faulty://" + w.name, timeout: time.Second}
	e, err := a.consoleEngine(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := e.Close(); err != nil {
			t.Error(err)
		}
	}()
	w.control.Pause()
	defer w.control.Resume() // before Close
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	found, err := e.Doctor(ctx)
	if err != nil || ctx.Err() != nil {
		t.Fatalf("%v, %v", err, ctx.Err())
	}
	wantFailed(t, *found.(*diagnosis), "lock", "half of what was left of --timeout")
}

// stuck is an engine with a check that never returns, as a look at a file system does that hangs.
type stuck struct{ *memlock.Driver }

func (stuck) Diagnose(context.Context) []driver.Finding { select {} }

func TestDoctor_OfACheckThatNeverReturns_PrintsTheOthers(t *testing.T) {
	w := newWorld(t)
	w.bad = stuck{w.store.Peer()}
	found := doctorOf(t, "faulty://"+w.name, 2)
	wantFailed(t, found, "reach", "a check has not come back within 1s (--timeout)")
	if len(found.Findings) != 5 || found.Engine != "memory" {
		t.Errorf("got %+v", found)
	}
}

func TestDoctor_OfAnEngineWhoseOpeningNeverReturns_SaysSo(t *testing.T) {
	w := newWorld(t)
	begun := make(chan struct{})
	go w.first.Do(func() { close(begun); select {} }) // never ends: open waits for it
	<-begun
	wantFailed(t, doctorOf(t, "faulty://"+w.name, 2), "reach", "a check has not come back")
}
