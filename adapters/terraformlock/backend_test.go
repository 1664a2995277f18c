package terraformlock

import (
	"bytes"
	"crypto/md5" //nolint:gosec // what Terraform sends
	"encoding/base64"
	"errors"
	"io"
	"io/fs"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock"
	_ "github.com/interlock-go/interlock/filelock"
	"github.com/interlock-go/interlock/interlocktest"
)

// server is a Backend as a run of Terraform sees it.
type server struct {
	t   *testing.T
	b   *Backend
	url string
}

// serve starts a server with a client of its own, as another process would have one.
func serve(t *testing.T, store *interlocktest.Store, dir string, o *Options) *server {
	t.Helper()
	b, err := New(store.Client(nil), gates(t, dir), dir, o)
	if err != nil {
		t.Fatal(err)
	}
	s := httptest.NewServer(b)
	t.Cleanup(func() {
		s.Close()
		_ = b.Close(t.Context()) // the store reports what it left locked
	})
	return &server{t, b, s.URL + "/"}
}

// gates are the locks of a folder.
func gates(t *testing.T, dir string) *interlock.Client {
	t.Helper()
	files, err := interlock.Open(t.Context(), "file://"+filepath.Join(dir, ".gates"), nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = files.Close() })
	return files
}

// ask sends a request, and fails unless the answer has the status. It returns the body.
func (s *server) ask(status int, method, path, body string) string {
	s.t.Helper()
	r, err := http.NewRequestWithContext(s.t.Context(), method, s.url+path, strings.NewReader(body))
	if err != nil {
		s.t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		s.t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	text, err := io.ReadAll(answer.Body)
	if err != nil || answer.StatusCode != status {
		s.t.Errorf("%s %s: %s %q, %v; want %d", method, path, answer.Status, text, err, status)
	}
	return string(text)
}

const (
	one = `{"ID":"1","Who":"ann@host","Operation":"OperationTypeApply"}`
	two = `{"ID":"2","Who":"bob@host","Operation":"OperationTypePlan"}`
)

// The course of two runs, as https://developer.hashicorp.com/terraform/language/backend/http describes the requests.
func TestRuns_TakeTurns(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, interlocktest.New(t, nil), dir, nil)
	s.ask(200, MethodLock, "net", one)
	s.ask(200, MethodLock, "net", one) // it has not heard the first answer
	if got := s.ask(423, MethodLock, "net", two); got != one {
		t.Errorf("who holds the lock: %q", got)
	}
	s.ask(200, MethodLock, "other/net", two) // another state
	s.ask(200, MethodUnlock, "other/net", two)
	s.ask(404, http.MethodGet, "net", "")
	s.ask(200, http.MethodPost, "net?ID=1", `{"serial":1}`)
	s.ask(200, http.MethodPost, "net?ID=1", `{"serial":2}`)
	s.ask(423, http.MethodPost, "net", `{"serial":3}`)
	if got := s.ask(423, http.MethodPost, "net?ID=2", `{"serial":3}`); got != one {
		t.Errorf("a write by another run: %q", got)
	}
	if got := s.ask(423, MethodUnlock, "net", two); got != one {
		t.Errorf("an unlock by another run: %q", got)
	}
	s.ask(200, MethodUnlock, "net", one)
	s.ask(200, MethodUnlock, "net", one) // it has not heard the first answer
	s.ask(409, http.MethodPost, "net?ID=1", `{"serial":3}`)
	if got := s.ask(200, http.MethodGet, "net", ""); got != `{"serial":2}` {
		t.Errorf("the state: %q", got)
	}
	text, err := os.ReadFile(filepath.Join(dir, "net.tfstate.backup"))
	if err != nil || string(text) != `{"serial":1}` {
		t.Errorf("the state before: %q, %v", text, err)
	}
	s.ask(200, MethodLock, "net", two)
	s.ask(200, http.MethodDelete, "net?ID=2", "")
	s.ask(200, MethodUnlock, "net", two)
	s.ask(404, http.MethodGet, "net", "")
}

// "terraform force-unlock" of another machine has no lock info to send. The lock may be in use, so the log says who has
// freed it.
func TestForcedUnlock_EndsTheLockOfAKilledRun_AndLeavesATrace(t *testing.T) {
	logged := new(bytes.Buffer)
	s := serve(t, interlocktest.New(t, nil), t.TempDir(), &Options{
		Logger: slog.New(slog.NewTextHandler(logged, nil)),
	})
	s.ask(200, MethodLock, "net", one)
	s.ask(200, MethodUnlock, "net", "")
	for _, says := range []string{"by force", "who=local", "from=127.0.0.1:", "state=net", "id=1", "age=", "ann@host"} {
		if !strings.Contains(logged.String(), says) {
			t.Errorf("the log does not say %q: %s", says, logged)
		}
	}
	logged.Reset()
	s.ask(200, MethodLock, "net", two)
	s.ask(423, http.MethodPost, "net?ID=1", `{}`)
	s.ask(200, MethodUnlock, "net", two)
	if logged.Len() > 0 {
		t.Errorf("an unlock by its run is logged: %s", logged)
	}
}

func TestMaxHold_EndsTheLockOfAKilledRun(t *testing.T) {
	s := serve(t, interlocktest.New(t, nil), t.TempDir(), &Options{MaxHold: 50 * time.Millisecond})
	s.ask(200, MethodLock, "net", one)
	if h := s.b.holder("net"); h != nil { // a slow machine may have seen the end already
		<-h.lease.Lost()
	}
	s.ask(409, http.MethodPost, "net?ID=1", `{}`)
	s.ask(200, MethodLock, "net", two) // this lock ends as soon, so the answer to its unlock depends on the machine
}

// A configuration without lock_address: each write is alone, and none comes into a run that has locked.
func TestWrite_WithoutALock_TakesItForTheRequest(t *testing.T) {
	s := serve(t, interlocktest.New(t, nil), t.TempDir(), nil)
	s.ask(200, http.MethodPost, "net", `{"serial":1}`)
	s.ask(200, http.MethodPost, "net", `{"serial":2}`)
	s.ask(200, MethodLock, "net", one)
	s.ask(423, http.MethodDelete, "net", "")
	s.ask(200, MethodUnlock, "net", one)
	s.ask(200, http.MethodDelete, "net", "")
}

// Servers with one folder and one store are one: a run that has locked at one of them keeps others out at each.
func TestSeveralServers_ShareLocks(t *testing.T) {
	store, dir := interlocktest.New(t, nil), t.TempDir()
	a, b := serve(t, store, dir, nil), serve(t, store, dir, nil)
	a.ask(200, MethodLock, "net", one)
	if got := b.ask(423, MethodLock, "net", two); got != one {
		t.Errorf("who holds the lock: %q", got)
	}
	b.ask(423, http.MethodPost, "net", `{}`)
	b.ask(423, MethodUnlock, "net", one)
	a.ask(200, MethodUnlock, "net", one)
	b.ask(200, MethodLock, "net", two)
	b.ask(200, MethodUnlock, "net", two)
}

// A server whose lock was lost writes nothing: neither when it knows, nor when it does not know yet.
func TestServer_ThatWasOvertaken_WritesNothing(t *testing.T) {
	store, dir := interlocktest.New(t, nil), t.TempDir()
	a, b := serve(t, store, dir, nil), serve(t, store, dir, nil)
	a.ask(200, MethodLock, "net", one)
	old, _ := a.b.holder("net").lease.Stamp()
	a.ask(200, http.MethodPost, "net?ID=1", `{"serial":1}`)
	store.Lose(interlock.KindMutex, "terraform/net")
	b.ask(200, MethodLock, "net", two)
	var early *staleError // also before the next holder has written: it may have read
	if err := a.b.states.write(t.Context(), "net", old.Token, []byte(`{"serial":9}`)); !errors.As(err, &early) {
		t.Errorf("a write with the token of before, after the next lock: %v", err)
	}
	b.ask(200, http.MethodPost, "net?ID=2", `{"serial":2}`)
	a.ask(409, http.MethodPost, "net?ID=1", `{"serial":9}`)
	var stale *staleError
	if err := a.b.states.write(t.Context(), "net", old.Token, []byte(`{"serial":9}`)); !errors.As(err, &stale) {
		t.Errorf("a write with the token of before: %v", err)
	}
	if got := b.ask(200, http.MethodGet, "net", ""); got != `{"serial":2}` {
		t.Errorf("the state: %q", got)
	}
	b.ask(200, MethodUnlock, "net", two)
}

// The files of a state are folders of none.
func TestNames_OfFilesOfOtherStates_AreRefused(t *testing.T) {
	s := serve(t, interlocktest.New(t, nil), t.TempDir(), nil)
	for _, kind := range []string{".tfstate", ".tfstate.backup", ".fence", ".lock", ".TFState"} {
		got := s.ask(400, http.MethodPost, "deep/net"+kind+"/sub", `{"serial":1}`)
		if !strings.Contains(got, "no word before a /") {
			t.Errorf("%s: %q", kind, got)
		}
		s.ask(200, http.MethodPost, "deep/net"+kind, `{"serial":1}`) // no file of deep/net
		s.ask(200, http.MethodPost, "deep/net", `{"serial":2}`)
	}
	s.ask(200, http.MethodPost, "deep/net/sub", `{"serial":1}`)
}

func TestEngine_ThatIsDown_Is503(t *testing.T) {
	store := interlocktest.New(t, nil)
	s := serve(t, store, t.TempDir(), nil)
	store.SetDown(true)
	s.ask(503, MethodLock, "net", one)
	s.ask(503, http.MethodPost, "net", `{}`)
	store.SetDown(false)
	s.ask(200, MethodLock, "net", one)
	s.ask(200, MethodUnlock, "net", one)
}

func TestClose_GivesLocksBack(t *testing.T) {
	store, dir := interlocktest.New(t, nil), t.TempDir()
	a, b := serve(t, store, dir, nil), serve(t, store, dir, nil)
	a.ask(200, MethodLock, "net", one)
	if err := a.b.Close(t.Context()); err != nil {
		t.Error(err)
	}
	a.ask(503, MethodLock, "net", two)
	b.ask(200, MethodLock, "net", two)
	b.ask(200, MethodUnlock, "net", two)
}

func TestBadRequests_SayWhatIsWrong(t *testing.T) {
	s := serve(t, interlocktest.New(t, nil), t.TempDir(), &Options{MaxState: 10})
	for _, path := range []string{
		"", "%2e%2e/net", "a/%2e%2e/%2e%2e/b", ".gates/net", "a%00b", "a//b", strings.Repeat("n", 201),
	} {
		s.ask(400, http.MethodGet, path, "")
	}
	s.ask(400, MethodLock, "net", "")
	s.ask(400, MethodLock, "net", "no JSON")
	s.ask(400, MethodLock, "net", `{"Who":"nobody"}`)
	s.ask(413, MethodLock, "net", `{"ID":"`+strings.Repeat("1", maxInfo)+`"}`)
	s.ask(400, http.MethodPost, "net", "no JSON")
	s.ask(413, http.MethodPost, "net", `{"serial":12345}`)
	s.ask(405, http.MethodPatch, "net", "")
	if _, err := New(nil, nil, t.TempDir(), nil); err == nil {
		t.Error("New without a client")
	}
}

// An ID is what the run has sent, and a label of the engine has its limits: 256 bytes of text.
func TestLock_OfAnyID_Locks(t *testing.T) {
	store := interlocktest.New(t, nil)
	s := serve(t, store, t.TempDir(), nil)
	for id, shown := range map[string]string{
		strings.Repeat("1", 300):       strings.Repeat("1", 241),
		strings.Repeat("é", 200):       strings.Repeat("é", 120),
		strings.Repeat("x", 240) + "é": strings.Repeat("x", 240),
		`a\u0000b\u001b[2J`:            "a?b?[2J",
	} {
		body := `{"ID":"` + id + `"}`
		s.ask(200, MethodLock, "net", body)
		info, err := store.Client(nil).Look(t.Context(), interlock.KindMutex, prefix+"net")
		if err != nil || len(info.Holders) != 1 || info.Holders[0].Label != "terraform run "+shown {
			t.Errorf("%q is shown as %+v, %v", id, info.Holders, err)
		}
		s.ask(200, MethodUnlock, "net", body)
	}
}

// Terraform sends a digest beside each state.
func TestWrite_OfAStateThatIsNotTheOneThatWasSent_IsRefused(t *testing.T) {
	s := serve(t, interlocktest.New(t, nil), t.TempDir(), nil)
	const state = `{"serial":1}`
	sum := md5.Sum([]byte(state)) //nolint:gosec // what Terraform sends
	right := base64.StdEncoding.EncodeToString(sum[:])
	for sent, status := range map[string]int{right: 200, right[1:]: 400, "AAAAAAAAAAAAAAAAAAAAAA==": 400} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"net", strings.NewReader(state))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-MD5", sent)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if answer.Body.Close(); answer.StatusCode != status {
			t.Errorf("with the digest %s: %s, want %d", sent, answer.Status, status)
		}
	}
	if got := s.ask(200, http.MethodGet, "net", ""); got != state {
		t.Errorf("the state: %q", got)
	}
}

// What a server that was killed had half written holds secrets, as states do.
func TestNew_RemovesWhatKilledServersHadHalfWritten(t *testing.T) {
	store, dir := interlocktest.New(t, nil), t.TempDir()
	serve(t, store, dir, nil).ask(200, http.MethodPost, "deep/net", `{"serial":1}`)
	half := filepath.Join(dir, "deep", newName+"net.tfstate")
	writing := filepath.Join(dir, "deep", newName+"other.tfstate.backup")
	for _, name := range []string{half, writing} {
		if err := os.WriteFile(name, []byte(`{"serial`), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	gate, err := gates(t, dir).Mutex("deep/other", nil).TryLock(t.Context()) // a server that is alive is writing
	if err != nil {
		t.Fatal(err)
	}
	s := serve(t, store, dir, nil)
	if _, err := os.Stat(half); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the start of the next server: %v", err)
	}
	if _, err := os.Stat(writing); err != nil {
		t.Errorf("what another server is writing: %v", err)
	}
	if err := gate.Unlock(t.Context()); err != nil {
		t.Error(err)
	}
	for range 2 { // the second one has a state to keep beside it
		s.ask(200, http.MethodPost, "deep/other", `{"serial":2}`)
		s.ask(200, http.MethodDelete, "deep/other", "")
	}
	if _, err := os.Stat(writing); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("after the next write of that state: %v", err)
	}
}

// Earlier versions named such files by a number, which tells no state: only those of an hour ago are nobody's.
func TestNew_RemovesWhatServersOfEarlierVersionsHadHalfWritten_AfterAnHour(t *testing.T) {
	dir := t.TempDir()
	old := filepath.Join(dir, "deep", newName+"2873546291")
	for name, age := range map[string]time.Duration{
		old:                                      2 * time.Hour,
		filepath.Join(dir, newName+"123456"):     0,             // an earlier version may be writing it
		filepath.Join(dir, newName+"12.txt"):     2 * time.Hour, // of somebody else
		filepath.Join(dir, "deep", "2873546291"): 2 * time.Hour,
	} {
		err := os.MkdirAll(filepath.Dir(name), 0o700)
		if err == nil {
			err = os.WriteFile(name, []byte(`{"serial`), 0o600)
		}
		if err == nil {
			err = os.Chtimes(name, time.Time{}, time.Now().Add(-age))
		}
		if err != nil {
			t.Fatal(err)
		}
		defer func() {
			if _, err := os.Stat(name); errors.Is(err, fs.ErrNotExist) != (name == old) {
				t.Errorf("%s after the start: %v", name, err)
			}
		}()
	}
	serve(t, interlocktest.New(t, nil), dir, nil)
}

// The fence counts by token alone: the same holder writes again and again.
func TestFence_LetsTheNewestHolderWriteAgain(t *testing.T) {
	dir := t.TempDir()
	f, err := openFolder(gates(t, dir), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, token := range []uint64{7, 7, 9} {
		if err := f.write(t.Context(), "net", token, []byte(`{}`)); err != nil {
			t.Errorf("token %d: %v", token, err)
		}
	}
	if err := f.write(t.Context(), "net", 8, nil); !errors.As(err, new(*staleError)) {
		t.Errorf("token 8 after 9: %v", err)
	}
}
