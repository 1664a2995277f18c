package terraformlock

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/interlock-go/interlock/interlocktest"
)

// serveHastily serves b by a server that gives each whole request, and each whole answer, little time.
func serveHastily(t *testing.T, b *Backend) (url string, haste time.Duration) {
	t.Helper()
	haste = 300 * time.Millisecond
	s := httptest.NewUnstartedServer(b)
	s.Config.ReadHeaderTimeout, s.Config.ReadTimeout, s.Config.WriteTimeout = time.Minute, haste, haste
	s.Start()
	t.Cleanup(s.Close)
	return s.URL + "/", haste
}

// slowly calls step again and again for longer than so long.
func slowly(t *testing.T, long time.Duration, step func() error) {
	t.Helper()
	pace := time.NewTicker(long / 10)
	defer pace.Stop()
	for began := time.Now(); time.Since(began) < 2*long; <-pace.C {
		if err := step(); err != nil {
			t.Errorf("after %v: %v", time.Since(began), err)
			return
		}
	}
}

func TestState_ThatComesSlowly_IsWritten(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, interlocktest.New(t, nil), dir, nil)
	url, haste := serveHastily(t, s.b)
	body, to := io.Pipe()
	written := make(chan struct{})
	defer func() { _ = body.Close(); <-written }()
	go func() {
		defer close(written)
		slowly(t, haste, func() error { _, err := io.WriteString(to, " "); return err })
		_, _ = io.WriteString(to, `{"serial":1}`)
		_ = to.Close()
	}()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, url+"net", body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusOK {
		t.Errorf("a state that came slowly: %s", answer.Status)
	}
	if got := strings.TrimSpace(s.ask(200, http.MethodGet, "net", "")); got != `{"serial":1}` {
		t.Errorf("the state: %q", got)
	}
}

// large is a state that no buffer on the way takes whole.
func large(t *testing.T, dir string) []byte {
	t.Helper()
	text := fmt.Appendf(nil, `{"serial":1,"resources":"%s"}`, bytes.Repeat([]byte("r"), 32<<20))
	if err := os.WriteFile(filepath.Join(dir, "net.tfstate"), text, 0o600); err != nil {
		t.Fatal(err)
	}
	return text
}

func TestState_ThatIsTakenSlowly_ArrivesWhole(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, interlocktest.New(t, nil), dir, nil)
	text := large(t, dir)
	url, haste := serveHastily(t, s.b)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url+"net", http.NoBody)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.ContentLength != int64(len(text)) {
		t.Errorf("it tells a length of %d, want %d", answer.ContentLength, len(text))
	}
	var got bytes.Buffer
	slowly(t, haste, func() error { _, err := io.CopyN(&got, answer.Body, 1000); return err })
	if _, err := io.Copy(&got, answer.Body); err != nil || !bytes.Equal(got.Bytes(), text) {
		t.Errorf("%d bytes of %d: %v", got.Len(), len(text), err)
	}
}

// A client that stands still holds nothing at the server, and half a state is none.
func TestState_OfWhichNoMoreComes_IsGivenUp(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, interlocktest.New(t, nil), dir, nil)
	s.ask(200, http.MethodPost, "net", `{"serial":1}`)
	s.b.stall = 50 * time.Millisecond
	body, to := io.Pipe()
	defer func() { _ = to.Close() }()
	go func() { _, _ = io.WriteString(to, `{"serial":2,`) }()
	r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.url+"net", body)
	if err != nil {
		t.Fatal(err)
	}
	answer, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = answer.Body.Close() }()
	if answer.StatusCode != http.StatusRequestTimeout {
		t.Errorf("half a state: %s", answer.Status)
	}
	s.b.stall = defaultStall
	if got := s.ask(200, http.MethodGet, "net", ""); got != `{"serial":1}` {
		t.Errorf("the state: %q", got)
	}
}

func TestState_ThatIsNotTaken_IsGivenUp(t *testing.T) {
	dir := t.TempDir()
	s := serve(t, interlocktest.New(t, nil), dir, nil)
	large(t, dir)
	s.b.stall = 50 * time.Millisecond
	answered := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		defer close(answered)
		s.b.ServeHTTP(w, r)
	}))
	defer server.Close()
	c, err := (&net.Dialer{}).DialContext(t.Context(), "tcp", server.Listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = c.Close() }()
	if _, err := io.WriteString(c, "GET /net HTTP/1.1\r\nHost: states\r\n\r\n"); err != nil {
		t.Fatal(err)
	}
	bounded, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	select {
	case <-answered:
	case <-bounded.Done():
		t.Error("the server waits for a client that reads nothing")
	}
}
