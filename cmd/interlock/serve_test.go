package main

import (
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// A server that ends gives its locks back, so that runs at the next one need not wait for a lease.
func TestServeTerraform_LocksForWhoKnowsAToken(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	tokens := filepath.Join(dir, "tokens")
	if err := os.WriteFile(tokens, []byte("ann:0123456789abcdef\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{
		"serve", "terraform", "--url", "file://" + filepath.Join(dir, "locks"), "--dir", filepath.Join(dir, "states"),
		"--listen", "127.0.0.1:0", "--token-file", tokens,
	}
	s := serveCommand(t, args...)
	ask := func(status int, method, user, secret, body string) {
		t.Helper()
		r, err := http.NewRequestWithContext(t.Context(), method, s.page+"net", strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.SetBasicAuth(user, secret)
		answer, err := http.DefaultClient.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		defer answer.Body.Close()
		if text, _ := io.ReadAll(answer.Body); answer.StatusCode != status {
			t.Errorf("%s as %s: %s %s, want %d", method, user, answer.Status, text, status)
		}
	}
	ask(http.StatusUnauthorized, "LOCK", "", "", `{"ID":"1"}`)
	ask(http.StatusUnauthorized, "LOCK", "ann", "0123456789abcdeX", `{"ID":"1"}`)
	ask(http.StatusUnauthorized, "LOCK", "bob", "0123456789abcdef", `{"ID":"1"}`)
	ask(http.StatusUnauthorized, http.MethodGet, "nobody", "", "")
	ask(http.StatusOK, "LOCK", "ann", "0123456789abcdef", `{"ID":"1"}`)
	ask(http.StatusLocked, "LOCK", "ann", "0123456789abcdef", `{"ID":"2"}`)
	s.stop()
	if code := <-s.ended; code != exitOK {
		t.Errorf("exit code %d", code)
	}
	s = serveCommand(t, args...)
	ask(http.StatusOK, "LOCK", "ann", "0123456789abcdef", `{"ID":"2"}`)
	ask(http.StatusOK, "UNLOCK", "ann", "0123456789abcdef", `{"ID":"2"}`)
}

func TestServeTerraform_OfWrongFlags_IsUsage(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	for says, args := range map[string][]string{
		"--dir is missing":         {},
		"is not a folder":          {"--dir", file},
		"must not be negative":     {"--dir", t.TempDir(), "--max-hold", "-1s"},
		"--token-file is needed":   {"--dir", t.TempDir(), "--listen", "0.0.0.0:0"},
		"--tls-cert and --tls-key": {"--dir", t.TempDir(), "--tls-cert", file},
	} {
		got := command(t, nil, append([]string{"serve", "terraform", "--url", "mem://"}, args...)...)
		if got.code != exitUsage || !strings.Contains(got.stderr, says) {
			t.Errorf("%v: %d %q, want %q", args, got.code, got.stderr, says)
		}
	}
}
