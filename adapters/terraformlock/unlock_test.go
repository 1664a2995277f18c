package terraformlock

import (
	"context"
	"errors"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/interlocktest"
)

// serveDirectly is a server without a network, for bubbles of testing/synctest.
func serveDirectly(t *testing.T, store *interlocktest.Store, dir string) *Backend {
	t.Helper()
	b, err := New(store.Client(nil), gates(t, dir), dir, nil)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// answerTo answers one request.
func answerTo(ctx context.Context, b *Backend, method, path, body string) (int, string) {
	w := httptest.NewRecorder()
	b.ServeHTTP(w, httptest.NewRequestWithContext(ctx, method, "http://localhost/"+path, strings.NewReader(body)))
	return w.Code, w.Body.String()
}

// expect answers one request, and fails unless the answer has the status.
func expect(t *testing.T, b *Backend, status int, method, path, body string) string {
	t.Helper()
	code, text := answerTo(t.Context(), b, method, path, body)
	if code != status {
		t.Errorf("%s %s %s: %d %q, want %d", method, path, body, code, text, status)
	}
	return text
}

// A run whose unlock was not answered asks again, and hears in the end that its lock is gone.
func TestUnlock_ThatTheEngineDoesNotAnswer_MayBeAskedAgain(t *testing.T) {
	for _, body := range []string{one, ""} { // by the run, and a forced one
		synctest.Test(t, func(t *testing.T) {
			store := interlocktest.New(t, nil)
			b := serveDirectly(t, store, t.TempDir())
			expect(t, b, 200, MethodLock, "net", one)
			store.SetDelay(time.Hour)
			gone, leave := context.WithCancel(t.Context())
			leave()
			if code, text := answerTo(gone, b, MethodUnlock, "net", body); code != 503 {
				t.Errorf("an unlock of who does not wait for the answer: %d %q", code, text)
			}
			store.SetDelay(0)
			synctest.Wait()                              // the first release is on its way still
			expect(t, b, 503, MethodUnlock, "net", body) // and not: somebody else has it
			expect(t, b, 423, MethodUnlock, "net", two)
			if got := expect(t, b, 423, MethodLock, "net", two); got != one {
				t.Errorf("who holds the lock: %q", got)
			}
			expect(t, b, 409, http.MethodPost, "net?ID=1", `{}`) // it has said that it is through
			time.Sleep(time.Minute)
			expect(t, b, 200, MethodUnlock, "net", body)
			expect(t, b, 200, MethodUnlock, "net", body)
			expect(t, b, 200, MethodLock, "net", two)
			expect(t, b, 200, MethodUnlock, "net", two)
		})
	}
}

// The run after one whose unlock was not answered is another: what is asked again for the first does not concern it.
func TestUnlock_ThatComesAgain_LeavesTheNextRunAlone(t *testing.T) {
	for body, status := range map[string]int{one: 200, "": 423} { // a forced one means the run that has it now
		synctest.Test(t, func(t *testing.T) {
			store, dir := interlocktest.New(t, nil), t.TempDir()
			a, b := serveDirectly(t, store, dir), serveDirectly(t, store, dir)
			expect(t, a, 200, MethodLock, "net", one)
			store.SetDelay(time.Hour)
			gone, leave := context.WithCancel(t.Context())
			leave()
			answerTo(gone, a, MethodUnlock, "net", one)
			store.SetDelay(0)
			time.Sleep(time.Minute)
			expect(t, b, 200, MethodLock, "net", two)
			expect(t, a, status, MethodUnlock, "net", body)
			expect(t, b, 200, http.MethodPost, "net?ID=2", `{"serial":1}`)
			expect(t, b, 200, MethodUnlock, "net", two)
		})
	}
}

// A run may take the lock while the server answers an unlock of what it has not locked.
func TestUnlock_OfNothing_TakesNothing(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store, dir := interlocktest.New(t, nil), t.TempDir()
		taken := 0
		watched := &interlock.Observer{Acquired: func(context.Context, interlock.Event) { taken++ }}
		b, err := New(store.Client(&interlock.Options{Observer: watched}), gates(t, dir), dir, nil)
		if err != nil {
			t.Fatal(err)
		}
		expect(t, b, 200, MethodUnlock, "net", one)
		expect(t, b, 200, MethodUnlock, "net", "")
		if taken > 0 {
			t.Errorf("it has taken the lock %d times, in which a run was refused", taken)
		}
	})
}

// A lock that was lost is that of another by now, who gives it back elsewhere.
func TestUnlock_OfALostLock_SaysSoToItsRunAlone(t *testing.T) {
	store, dir := interlocktest.New(t, nil), t.TempDir()
	a, b := serve(t, store, dir, nil), serve(t, store, dir, nil)
	a.ask(200, MethodLock, "net", one)
	store.Lose(interlock.KindMutex, "terraform/net")
	<-a.b.held["net"].lease.Lost()
	a.ask(200, MethodUnlock, "net", "") // nobody has it
	if got := a.ask(409, MethodUnlock, "net", one); !strings.Contains(got, "lost") {
		t.Errorf("an unlock by its run: %q", got)
	}
	b.ask(200, MethodLock, "net", two)
	a.ask(423, MethodUnlock, "net", "")
	b.ask(200, MethodUnlock, "net", two)
}

// Who ends the server hears of a lock that was not given back: the next run waits for its lease.
func TestClose_TellsWhatWasNotGivenBack(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		store := interlocktest.New(t, nil)
		b := serveDirectly(t, store, t.TempDir())
		expect(t, b, 200, MethodLock, "net", one)
		store.SetDown(true)
		gone, leave := context.WithCancel(t.Context())
		leave()
		if err := b.Close(gone); err == nil || !strings.Contains(err.Error(), "state net") {
			t.Errorf("a close while the engine is down: %v", err)
		}
		store.SetDown(false)
	})
}

// What a server says too late of a lock that it has lost, or takes back, is not what the next run says of itself.
func TestInfo_IsThatOfTheRunThatHasTheLock(t *testing.T) {
	store, dir := interlocktest.New(t, nil), t.TempDir()
	a, b := serve(t, store, dir, nil), serve(t, store, dir, nil)
	shown := func(when string) {
		t.Helper()
		if got := a.ask(423, MethodLock, "net", `{"ID":"3"}`); got != two {
			t.Errorf("who holds the lock, %s: %q", when, got)
		}
	}
	a.ask(200, MethodLock, "net", one)
	store.Lose(interlock.KindMutex, "terraform/net")
	lost := a.b.held["net"]
	<-lost.lease.Lost()
	b.ask(200, MethodLock, "net", two)
	shown("while its predecessor is known")
	if err := a.b.keep("net", b.b.held["net"]); err != nil {
		t.Error(err)
	}
	var stale *staleError // an answer to LOCK that was held up, and comes after the next
	if err := a.b.keep("net", lost); !errors.As(err, &stale) || a.b.held["net"] == lost {
		t.Errorf("a run that comes after the next: %v", err)
	}
	a.b.held["net"] = lost
	a.ask(409, MethodUnlock, "net", one)
	shown("when its predecessor has unlocked")
	a.b.held["net"] = lost
	if err := a.b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	a = serve(t, store, dir, nil)
	shown("when the server of its predecessor has ended")
	b.ask(200, MethodUnlock, "net", two)
	if _, err := os.Stat(filepath.Join(dir, "net.lock")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a run says of itself stays when it has unlocked: %v", err)
	}
}

// Words belong to a token: none are shown for a later one that has said nothing.
func TestInfo_BelongsToAToken(t *testing.T) {
	dir := t.TempDir()
	f, err := openFolder(gates(t, dir), dir)
	if err != nil {
		t.Fatal(err)
	}
	says := func(token uint64, want string) {
		t.Helper()
		if got := string(f.info("net", token)); got != want {
			t.Errorf("token %d: %q, want %q", token, got, want)
		}
	}
	raise := func(token uint64, info string) error { return f.raise(t.Context(), "net", token, []byte(info)) }
	if err := errors.Join(raise(7, one), raise(9, two)); err != nil {
		t.Fatal(err)
	}
	if err := raise(7, one); !errors.As(err, new(*staleError)) {
		t.Errorf("token 7 after 9: %v", err)
	}
	f.forgetInfo(t.Context(), "net", 7)
	says(9, two)
	says(7, "")
	says(0, two) // of an engine that does not tell tokens
	if err := f.write(t.Context(), "net", 11, []byte(`{}`)); err != nil {
		t.Error(err)
	}
	says(11, "") // it has written without a lock of its own
	says(0, "")
}
