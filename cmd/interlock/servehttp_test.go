package main

import (
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// pageSession returns the session that the page shows, on the server at page. Users copy it, so it is run as it stands
// there.
func pageSession(t *testing.T, page string) *exec.Cmd {
	t.Helper()
	text, err := os.ReadFile("../../docs/serve.md")
	if err != nil {
		t.Fatal(err)
	}
	_, after, _ := strings.Cut(string(text), "<!-- run: cmd/interlock/servehttp_test.go -->\n```sh\n")
	session, _, found := strings.Cut(after, "```")
	if !found {
		t.Fatal("docs/serve.md has no session")
	}
	curl, err := exec.LookPath("curl")
	if err != nil {
		if os.Getenv("INTERLOCK_REQUIRE") != "" {
			t.Fatal("curl is not installed")
		}
		t.Skip("curl is not installed")
	}
	session = strings.ReplaceAll(session, "http://127.0.0.1:7072/", page)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", session)
	cmd.Env = append(os.Environ(), "PATH="+filepath.Dir(curl)+":"+os.Getenv("PATH"))
	return cmd
}

func TestServeHTTP_DoesWhatItsPageShows(t *testing.T) {
	t.Parallel()
	s := serveCommand(t, "serve", "http", "--url", "mem://", "--listen", "127.0.0.1:0")
	out, err := pageSession(t, s.page).CombinedOutput()
	if err != nil || strings.Count(string(out), `"state":"held"`) != 3 {
		t.Errorf("%v\n%s", err, out)
	}
	s.stop()
	if code := <-s.ended; code != exitOK {
		t.Errorf("exit code %d", code)
	}
}

func TestServeHTTP_TheJobOfThePage_StopsWithoutTheLock(t *testing.T) {
	t.Parallel()
	s := serveCommand(t, "serve", "http", "--url", "mem://", "--listen", "127.0.0.1:0")
	answer, err := http.Post(s.page+"v1/leases", "application/json", strings.NewReader(`{"name":"nightly"}`))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	session := pageSession(t, s.page)
	last := len(session.Args) - 1
	session.Args[last] = strings.Replace(session.Args[last], `"wait":60`, `"wait":0`, 1)
	out, err := session.CombinedOutput()
	if err == nil || strings.Count(string(out), "curl: ") != 1 {
		t.Errorf("the job goes on: %v\n%s", err, out)
	}
	s.stop()
	<-s.ended
}

func TestServeHTTP_LetsInWhoKnowsAToken(t *testing.T) {
	t.Parallel()
	tokens := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(tokens, []byte("ann:0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s := serveCommand(t, "serve", "http", "--url", "mem://", "--listen", "127.0.0.1:0", "--token-file", tokens)
	for header, status := range map[string]int{
		"": http.StatusUnauthorized, "Bearer 0123456789abcdeX": http.StatusUnauthorized,
		"Bearer 0123456789abcdef": http.StatusCreated,
	} {
		body := strings.NewReader(`{"name":"n"}`)
		r, err := http.NewRequestWithContext(t.Context(), http.MethodPost, s.page+"v1/leases", body)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Authorization", header)
		r.Header.Set("Content-Type", "application/json")
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if text, _ := io.ReadAll(answer.Body); answer.StatusCode != status {
			t.Errorf("%q: %s %s, want %d", header, answer.Status, text, status)
		}
		answer.Body.Close()
	}
}

func TestServeHTTP_ThatCannotKeepItsPromises_IsRefused(t *testing.T) {
	for says, args := range map[string][]string{
		"ends with its process":    {"--url", "file://" + t.TempDir(), "--listen", "127.0.0.1:0"},
		"--max-leases 0":           {"--url", "mem://", "--max-leases", "0"},
		"--token-file is needed":   {"--url", "mem://", "--listen", "0.0.0.0:0"},
		"--tls-cert and --tls-key": {"--url", "mem://", "--tls-cert", "c.pem"},
	} {
		got := command(t, nil, append([]string{"serve", "http"}, args...)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, says) {
			t.Errorf("%v: %d %q, want %q", args, got.code, got.stderr, says)
		}
	}
}
