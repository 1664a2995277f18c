package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const before = `package a

// Limit is the largest.
const Limit = 3

// T has a field of each sort.
type T struct {
	Name string ` + "`json:\"name\"`" + `
	own  int
}

// Reader reads.
type Reader interface{ Read(p []byte) (int, error) }

// Do does.
func (t *T) Do(n int) error { return nil }

// Of makes one.
func Of[E comparable](e E) (t T) { return t }
`

// check runs the command over a module with one package of this text.
func check(t *testing.T, top, text string, args ...string) (string, error) {
	t.Helper()
	t.Setenv("GOWORK", "off")
	module := filepath.Join(top, "module")
	for name, text := range map[string]string{
		"go.mod": "module example.com/a\n\ngo 1.25.0\n", "a.go": text, "internal/b/b.go": "package b\n\nfunc B() {}\n",
		"cmd/c/main.go": "package main\n\nfunc Main() {}\n\nfunc main() {}\n",
	} {
		name = filepath.Join(module, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	t.Chdir(top)
	var out strings.Builder
	err := run(append(args, ".", "module"), &out)
	return out.String(), err
}

func TestRun_NamesEachLineThatHasChanged(t *testing.T) {
	for name, tt := range map[string]struct{ old, now, want string }{
		"nothing":         {"", "", ""},
		"a comment":       {"// Do does.", "// Do does more.", ""},
		"something own":   {"own  int", "own  bool", ""},
		"a parameter":     {"Do(n int)", "Do(n int64)", "+ example.com/a: method (*T) Do(n int64) error"},
		"the receiver":    {"(t *T) Do", "(t T) Do", "+ example.com/a: method (T) Do(n int) error"},
		"a field's type":  {"Name string", "Name []byte", "type T struct: Name []byte `json:\"name\"`"},
		"a value":         {"Limit = 3", "Limit = 4", "+ example.com/a: const Limit untyped int = 4"},
		"a method wanted": {"{ Read(", "{ Close(); Read(", "+ example.com/a: type Reader interface: Close()"},
		"a constraint":    {"comparable", "any", "+ example.com/a: func Of[E any](e E) (t T)"},
		"what is gone":    {"const Limit = 3", "", "- example.com/a: const Limit untyped int = 3"},
	} {
		t.Run(name, func(t *testing.T) {
			top := t.TempDir()
			if out, err := check(t, top, before, "-update"); err != nil {
				t.Fatal(err, out)
			}
			out, err := check(t, top, strings.Replace(before, tt.old, tt.now, 1))
			if (err != nil) != (tt.want != "") || !strings.Contains(out, tt.want) {
				t.Errorf("%v, %q; want %q", err, out, tt.want)
			}
			if strings.Contains(out, "Main") || strings.Contains(out, "B()") {
				t.Errorf("a program's name or an internal one: %q", out)
			}
		})
	}
}

func TestRun_WithoutAFile_SaysThatAllIsNew(t *testing.T) {
	out, err := check(t, t.TempDir(), before)
	if err == nil || strings.Count(out, "+ ") != 7 {
		t.Errorf("%v\n%s", err, out)
	}
}
