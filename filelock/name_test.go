package filelock

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/interlock-go/interlock/driver"
)

var oddNames = []string{
	"a", "A", "nightly", "Nightly", "NIGHTLY", ".", "..", "...", ".hidden", "a.b", "a..b", "/", "//",
	"../../etc/passwd", "a/b",
	"%", "%2e", "%2E", "=", "a=b", "a=" + strings.Repeat("0", 64), " ", "a b", "\n", "\x00", "a\x00b", "\x7f",
	"~", "-", "-rf", "_", "*", "?", "\\",
	"é", "e\u0301", "日本語", "🔒", "\ufeff", "mutex", "a.mutex", ".mutex", "stock:42", "\xff",
	strings.Repeat("a", 249), strings.Repeat("a", 250), strings.Repeat("a", 512), strings.Repeat("a", 511) + "b",
	strings.Repeat("A", 83), strings.Repeat("A", 84), strings.Repeat("日", 170), strings.Repeat("日", 170) + "x",
	strings.Repeat("/", 512),
	strings.Repeat("a", 182) + strings.Repeat("/", 100), strings.Repeat("a", 183) + strings.Repeat("/", 100),
	strings.Repeat("a", 184) + strings.Repeat("/", 100),
}

func TestFileName_OfDifferentNames_DiffersAlsoWhereCaseIsFolded(t *testing.T) {
	seen := map[string]string{}
	for _, name := range oddNames {
		file := fileName(driver.Key{Kind: driver.KindMutex, Name: name})
		if other, taken := seen[strings.ToLower(file)]; taken && other != name {
			t.Errorf("%q and %q share the file %s", name, other, file)
		}
		seen[strings.ToLower(file)] = name
		checkFileName(t, name)
	}
}

func TestFileName_OfPlainNames_IsReadable(t *testing.T) {
	for name, want := range map[string]string{
		"nightly":     "nightly.mutex",
		"stock:42":    "stock%3a42.mutex",
		"Nightly":     "%4eightly.mutex",
		"..":          "%2e..mutex",
		"a/../b.conf": "a%2f..%2fb.conf.mutex",
	} {
		if got := fileName(driver.Key{Kind: driver.KindMutex, Name: name}); got != want {
			t.Errorf("%q: %s, want %s", name, got, want)
		}
	}
}

func TestParseFileName_OfOtherFiles_IsRefused(t *testing.T) {
	for _, file := range []string{
		"", "x", ".mutex", "x.mutex.bak", ".x.mutex", "A.mutex", "%.mutex", "%4.mutex", "%4E.mutex",
		"%61.mutex", "x=.mutex", "x=12.mutex",
		"x=" + strings.Repeat("A", 64) + ".mutex", "=" + strings.Repeat("a", 64) + ".mutex",
		"a/b.mutex", "é.mutex", ".diagnose-123",
	} {
		if p, ok := parseFileName(file); ok {
			t.Errorf("%q is taken for %+v", file, p)
		}
	}
}

// checkFileName checks the rules that hold for the file of every name.
func checkFileName(t *testing.T, name string) {
	t.Helper()
	file := fileName(driver.Key{Kind: driver.KindMutex, Name: name})
	plain := filepath.Base(file) == file && !strings.HasPrefix(file, ".") && !strings.ContainsAny(file, "/\x00")
	if len(file) > maxFileName || !plain {
		t.Errorf("%q: %q is not a plain file name", name, file)
	}
	p, ok := parseFileName(file)
	if !ok || p.kind != driver.KindMutex || !p.hashed && p.name != name || p.hashed &&
		!strings.HasPrefix(name, p.name) {
		t.Errorf("%q: %q is read as %+v, %v", name, file, p, ok)
	}
}

func FuzzFileName(f *testing.F) {
	for _, name := range oddNames {
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, name string) {
		if name == "" || len(name) > maxName {
			return
		}
		checkFileName(t, name)
	})
}

func FuzzParseFileName(f *testing.F) {
	for _, name := range oddNames {
		f.Add(fileName(driver.Key{Kind: driver.KindMutex, Name: name}))
		f.Add(name)
	}
	f.Fuzz(func(t *testing.T, file string) {
		p, ok := parseFileName(file)
		if ok && !p.hashed && fileName(driver.Key{Kind: p.kind, Name: p.name}) != file {
			t.Errorf("%q is read as %q, whose file is another", file, p.name)
		}
	})
}
