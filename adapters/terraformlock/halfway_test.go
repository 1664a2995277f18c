package terraformlock

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/interlocktest"
)

// halfway is a write of which half has been sent.
type halfway struct {
	t      *testing.T
	rest   *io.PipeWriter
	status chan int // 0 if there was no answer
}

func (s *server) beginWrite(path, half string) *halfway {
	s.t.Helper()
	body, to := io.Pipe()
	r, err := http.NewRequestWithContext(s.t.Context(), http.MethodPost, s.url+path, body)
	if err != nil {
		s.t.Fatal(err)
	}
	h := &halfway{s.t, to, make(chan int, 1)}
	go func() { // ends with the request, which end ends
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			h.status <- 0
			return
		}
		_ = answer.Body.Close()
		h.status <- answer.StatusCode
	}()
	if _, err := io.WriteString(to, half); err != nil {
		s.t.Fatal(err)
	}
	return h
}

// end sends the rest, or cuts the line if there is an error, and fails unless the answer is one of those.
func (h *halfway) end(rest string, err error, answers ...int) {
	h.t.Helper()
	_, _ = io.WriteString(h.rest, rest)
	_ = h.rest.CloseWithError(err)
	if got := <-h.status; !slices.Contains(answers, got) {
		h.t.Errorf("a write that something came between: %d, want one of %d", got, answers)
	}
}

// A state of which half has come when its run loses the right to write is not written: the old one stays, whole.
func TestWrite_ThatIsHalfway_LeavesTheOldState(t *testing.T) {
	for between, what := range map[string]func(a, b *server, w *halfway, store *interlocktest.Store){
		"the lock is lost, and the next run has it": func(_, b *server, w *halfway, store *interlocktest.Store) {
			store.Lose(interlock.KindMutex, "terraform/net")
			b.ask(200, MethodLock, "net", two)
			w.end(`2}`, nil, 409)
			b.ask(200, MethodUnlock, "net", two)
		},
		"the run unlocks": func(a, _ *server, w *halfway, _ *interlocktest.Store) {
			a.ask(200, MethodUnlock, "net", one)
			w.end(`2}`, nil, 409)
		},
		"the server ends": func(a, _ *server, w *halfway, _ *interlocktest.Store) {
			if err := a.b.Close(a.t.Context()); err != nil {
				a.t.Error(err)
			}
			w.end(`2}`, nil, 409, 503) // it had begun to read, or not
		},
		"the line is cut": func(a, _ *server, w *halfway, _ *interlocktest.Store) {
			w.end(``, io.ErrUnexpectedEOF, 0)
			a.ask(200, MethodUnlock, "net", one)
		},
	} {
		t.Run(between, func(t *testing.T) {
			store, dir := interlocktest.New(t, nil), t.TempDir()
			a, b := serve(t, store, dir, nil), serve(t, store, dir, nil)
			a.ask(200, MethodLock, "net", one)
			a.ask(200, http.MethodPost, "net?ID=1", `{"serial":1}`)
			what(a, b, a.beginWrite("net?ID=1", `{"serial":`), store)
			if got := b.ask(200, http.MethodGet, "net", ""); got != `{"serial":1}` {
				t.Errorf("the state: %q", got)
			}
			left, err := os.ReadDir(dir)
			for _, file := range left {
				if strings.HasPrefix(file.Name(), ".new") || strings.HasSuffix(file.Name(), ".backup") {
					t.Errorf("there is %s", file.Name())
				}
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
}

// A write that has begun when its run loses the lock comes before the next run has the lock, or not at all.
func TestWrite_ThatWaitsAtTheFence_DoesNotComeAfterTheNextLock(t *testing.T) {
	store, dir := interlocktest.New(t, nil), t.TempDir()
	a, b := serve(t, store, dir, nil), serve(t, store, dir, nil)
	a.ask(200, MethodLock, "net", one)
	a.ask(200, http.MethodPost, "net?ID=1", `{"serial":1}`)
	gate, err := gates(t, dir).Mutex("net", nil).TryLock(t.Context()) // as a server that stands still
	if err != nil {
		t.Fatal(err)
	}
	w := a.beginWrite("net?ID=1", `{"serial":2}`)
	_ = w.rest.Close()
	store.Lose(interlock.KindMutex, "terraform/net")
	locked := make(chan struct{})
	go func() {
		defer close(locked)
		b.ask(200, MethodLock, "net", two)
	}()
	if err := gate.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	<-locked
	read := b.ask(200, http.MethodGet, "net", "")
	want := map[int]string{200: `{"serial":2}`, 409: `{"serial":1}`, 412: `{"serial":1}`}[<-w.status]
	if read != want {
		t.Errorf("the next run has read %q, want %q", read, want)
	}
	if got := b.ask(200, http.MethodGet, "net", ""); got != read {
		t.Errorf("the state has become %q after the next run had read %q", got, read)
	}
	b.ask(200, MethodUnlock, "net", two)
}

// A client that has not heard the answer sends a state again. What was there before the first time stays.
func TestWrite_ThatComesAgain_KeepsTheStateBefore(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, interlocktest.New(t, nil), dir, nil)
	for _, state := range []string{`{"serial":1}`, `{"serial":2}`, `{"serial":2}`} {
		s.ask(200, http.MethodPost, "net", state)
	}
	text, err := os.ReadFile(filepath.Join(dir, "net.tfstate.backup"))
	if err != nil || string(text) != `{"serial":1}` {
		t.Errorf("the state before: %q, %v", text, err)
	}
}
