package main

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

// listeners are the commands that listen, by what else they must be told. A new one has to be added, see
// TestServers_AreAllGuarded.
var listeners = map[string]func(t *testing.T) []string{
	"console":    func(*testing.T) []string { return nil },
	"serve http": func(*testing.T) []string { return nil },
	"serve terraform": func(t *testing.T) []string { //nolint:thelper // it is no helper
		return []string{"--dir", t.TempDir()}
	},
}

// listening returns the commands below cmd that have the flag --listen, as they are called.
func listening(cmd *cobra.Command, called string) (all []string) {
	if cmd.Flags().Lookup("listen") != nil {
		all = append(all, strings.TrimSpace(called))
	}
	for _, sub := range cmd.Commands() {
		all = append(all, listening(sub, called+" "+sub.Name())...)
	}
	return all
}

// asked sends a request with a body that most paths take, and returns the status, or 0 if ctx ended before the answer.
func asked(ctx context.Context, t *testing.T, method, url string, headers ...string) int {
	t.Helper()
	r, err := http.NewRequestWithContext(ctx, method, url, strings.NewReader(`{"name":"n"}`))
	if err != nil {
		t.Error(err)
		return 0
	}
	r.Header.Set("Content-Type", "application/json")
	for i := 0; i < len(headers); i += 2 {
		if headers[i] == "Host" {
			r.Host = headers[i+1]
		} else {
			r.Header.Set(headers[i], headers[i+1])
		}
	}
	answer, err := http.DefaultTransport.RoundTrip(r)
	if err != nil {
		if ctx.Err() == nil {
			t.Error(err)
		}
		return 0
	}
	defer answer.Body.Close()
	_, _ = io.Copy(io.Discard, answer.Body)
	return answer.StatusCode
}

// paths are some of each server's, with a method that they know and the one that a page of another site would use.
var paths = map[string][][2]string{
	"console":         {{http.MethodGet, "api/board"}, {http.MethodGet, "api/doctor"}, {http.MethodPost, "api/break"}},
	"serve http":      {{http.MethodGet, "v1/locks?name=n"}, {http.MethodPost, "v1/leases"}},
	"serve terraform": {{http.MethodGet, "net"}, {http.MethodPost, "net"}, {"LOCK", "net"}, {"UNLOCK", "net"}},
}

// What a web page that an operator opens can have a browser send reaches no server, with and without tokens.
func TestServers_AreAllGuarded(t *testing.T) {
	root := (&app{}).rootCommand()
	for _, called := range listening(root, "") {
		if listeners[called] == nil || paths[called] == nil {
			t.Errorf("%s listens, and is not in this test", called)
		}
	}
	for called, more := range listeners {
		t.Run(called, func(t *testing.T) {
			t.Parallel()
			engine := "mem://" + url.PathEscape(t.Name())
			args := append(strings.Fields(called), "--listen", "127.0.0.1:0", "--url", engine)
			s := serveCommand(t, append(args, more(t)...)...)
			withHost := serveCommand(t, append(append(args, "--host", "Ops.Example"), more(t)...)...)
			for _, p := range paths[called] {
				got := asked(t.Context(), t, p[0], s.page+p[1])
				if got == http.StatusMisdirectedRequest || got == http.StatusForbidden && called != "console" {
					t.Errorf("%v of a program: %d", p, got)
				}
				got = asked(t.Context(), t, p[0], s.page+p[1], "Host", "rebound.example")
				if got != http.StatusMisdirectedRequest {
					t.Errorf("%v under a foreign name: %d", p, got)
				}
				got = asked(t.Context(), t, p[0], withHost.page+p[1], "Host", "ops.example")
				if got == http.StatusMisdirectedRequest {
					t.Errorf("%v under a name that was given: %d", p, got)
				}
				for _, sent := range [][]string{
					{"Sec-Fetch-Site", "cross-site"},
					{"Sec-Fetch-Site", "same-site"},
					{"Origin", "http://localhost:18999"},
					{"Origin", "null"},
				} {
					if got := asked(t.Context(), t, p[0], s.page+p[1], sent...); got != http.StatusForbidden {
						t.Errorf("%v of another site, %v: %d", p, sent, got)
					}
				}
			}
		})
	}
}

// A right token passes at once, whoever else guesses from the same address; without one nothing does.
func TestServers_WithTokens_LetARightOnePassBesideGuesses(t *testing.T) {
	const name, secret = "ann", "0123456789abcdef"
	file := filepath.Join(t.TempDir(), "tokens")
	if err := os.WriteFile(file, []byte(name+":"+secret+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	credentials := func(called, secret string) []string {
		r := &http.Request{Header: http.Header{}}
		if called == "serve terraform" {
			r.SetBasicAuth(name, secret)
		} else {
			r.Header.Set("Authorization", "Bearer "+secret)
		}
		return []string{"Authorization", r.Header.Get("Authorization")}
	}
	for called, more := range listeners {
		t.Run(called, func(t *testing.T) {
			t.Parallel()
			engine := "mem://" + url.PathEscape(t.Name())
			args := append(strings.Fields(called), "--url", engine, "--listen", "127.0.0.1:0", "--token-file", file)
			s := serveCommand(t, append(args, more(t)...)...)
			page := s.page + paths[called][0][1]
			if got := asked(t.Context(), t, http.MethodGet, page); got != http.StatusUnauthorized {
				t.Errorf("without a token: %d", got)
			}
			ctx, cancel := context.WithCancel(t.Context())
			defer cancel()
			answers := make(chan int, 20)
			for range cap(answers) {
				go func() { answers <- asked(ctx, t, http.MethodGet, page, credentials(called, "guess")...) }()
			}
			count := map[int]int{<-answers: 1} // some have come by now, and others wait for their turn
			got := asked(ctx, t, http.MethodGet, page, credentials(called, secret)...)
			if got == http.StatusUnauthorized || got == http.StatusTooManyRequests {
				t.Errorf("a right token beside wrong ones: %d", got)
			}
			cancel()
			for range cap(answers) - 1 {
				count[<-answers]++
			}
			for got := range count {
				if got != http.StatusUnauthorized && got != http.StatusTooManyRequests && got != 0 {
					t.Errorf("wrong tokens: %v", count)
				}
			}
		})
	}
}

// The command serves at one place, which takes handlers behind a guard only: a server of its own would go around it.
func TestServers_AreServedAtOnePlace(t *testing.T) {
	served := map[string]bool{
		"Server": true, "Serve": true, "ServeTLS": true, "ListenAndServe": true, "ListenAndServeTLS": true,
	}
	set, found := token.NewFileSet(), 0
	err := filepath.WalkDir(".", func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
			return err
		}
		file, err := parser.ParseFile(set, path, nil, 0)
		if err != nil {
			return err
		}
		ast.Inspect(file, func(n ast.Node) bool {
			if s, ok := n.(*ast.SelectorExpr); ok && served[s.Sel.Name] {
				if x, ok := s.X.(*ast.Ident); ok && x.Name == "http" {
					if found++; path != filepath.FromSlash("internal/webpage/serve/serve.go") {
						t.Errorf("%s: only answer in internal/webpage/serve serves", set.Position(n.Pos()))
					}
				}
			}
			return true
		})
		return nil
	})
	if err != nil || found != 1 {
		t.Errorf("http.Server occurs %d times, %v; want once", found, err)
	}
}
