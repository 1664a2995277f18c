package main

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestSection_IsWhatStandsBelowItsTitle(t *testing.T) {
	const text = "# Changelog\n\nabout\n\n## Unreleased\n\n- new\n\n### Changed\n\n- other\n\n" +
		"## [0.2.0] - 2026-12-01\n\n- two\n\n## 0.2.0-rc.1\n\n- candidate\n\n## v0.1.0 (2026-11-26)\n\n- one\n"
	for name, want := range map[string]string{
		"Unreleased": "- new\n\n### Changed\n\n- other",
		"0.2.0":      "- two", "0.2.0-rc.1": "- candidate", "0.1.0": "- one", "0.3.0": "",
	} {
		if got := section(text, name); got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
	}
}

// modulesOf writes modules that require each other, and reads them.
func modulesOf(t *testing.T, requires map[string][]string) []*published {
	t.Helper()
	top := t.TempDir()
	var dirs []string
	for dir, others := range requires {
		text := "module example.com/" + dir + "\n\ngo 1.25.0\n"
		for _, other := range others {
			path := "example.com/" + other
			text += "\nrequire " + path + " v0.0.0\n\nreplace " + path + " => ../" + other + "\n"
		}
		if err := os.MkdirAll(filepath.Join(top, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(top, dir, "go.mod"), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		dirs = append(dirs, dir)
	}
	all, err := readModules(top, dirs)
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestModules_ComeAfterWhatTheyRequire(t *testing.T) {
	all, err := inOrder(modulesOf(t, map[string][]string{
		"command": {"engine", "core"}, "engine": {"core"}, "core": nil,
	}))
	if err != nil {
		t.Fatal(err)
	}
	var order []string
	for _, m := range all {
		order = append(order, m.dir)
	}
	if got := strings.Join(order, " "); got != "core engine command" {
		t.Error(got)
	}
	if _, err := inOrder(modulesOf(t, map[string][]string{"a": {"b"}, "b": {"a"}})); err == nil {
		t.Error("a circle has an order")
	}
}

// A module that anybody requires must not point to a folder of this repository.
func TestRewrite_GivesVersionsAndDropsFolders(t *testing.T) {
	all := modulesOf(t, map[string][]string{"engine": {"core"}, "core": nil})
	for _, m := range all {
		if err := m.rewrite("v0.1.0", all); err != nil {
			t.Fatal(err)
		}
		text, err := m.file.Format()
		if err != nil {
			t.Fatal(err)
		}
		if s := string(text); strings.Contains(s, "replace") || strings.Contains(s, "v0.0.0") ||
			m.dir == "engine" && !strings.Contains(s, "example.com/core v0.1.0") {
			t.Error(s)
		}
	}
}

// repository makes a git repository with one commit and these files.
func repository(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		name = filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(name, []byte(text), 0o755); err != nil { // some are scripts
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "--quiet"},
		{"add", "."},
		{"-c", "user.name=a", "-c", "user.email=a@b", "commit", "--quiet", "--message", "one"},
		{"tag", "v0.0.1"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = dir
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	return dir
}

func TestRepository_ThatCannotBecomeARelease_IsRefused(t *testing.T) {
	dir := repository(t, map[string]string{"CHANGELOG.md": "# Changelog\n\n## Unreleased\n"})
	check := func(version string) error {
		r := &release{from: dir, to: filepath.Join(t.TempDir(), "dist"), version: version}
		return errors.Join(r.checkRepository(t.Context()), r.writeNotes(t.Context()))
	}
	for version, says := range map[string]string{
		"0.1.0": "is no version", "v0.1": "is no version", "v2.0.0": "is no version", "v0.0.1": "is tagged already",
		"v0.1.0": "says of no change",
	} {
		if err := check(version); err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v, want %q", version, err, says)
		}
	}
	if err := os.WriteFile(filepath.Join(dir, "CHANGELOG.md"), []byte("## Unreleased\n\n- new\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := check("v0.1.0"); err == nil || !strings.Contains(err.Error(), "in no commit") {
		t.Errorf("with a change that is in no commit: %v", err)
	}
}

// What is made twice is the same, whenever and by whomever.
func TestArchive_DependsOnNothingButItsFiles(t *testing.T) {
	var made [][]byte
	for n := range 2 {
		r := &release{to: t.TempDir(), work: t.TempDir(), when: time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC)}
		if err := os.MkdirAll(r.repository(), 0o755); err != nil {
			t.Fatal(err)
		}
		binary := filepath.Join(r.to, "program")
		license := filepath.Join(r.repository(), "LICENSE")
		for name, text := range map[string]string{binary: "program", license: "license"} {
			if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
			later := time.Now().Add(time.Duration(n) * time.Hour)
			if err := os.Chtimes(name, later, later); err != nil {
				t.Fatal(err)
			}
		}
		if err := r.archive("a.tar.gz", binary); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(filepath.Join(r.to, "a.tar.gz"))
		if err != nil {
			t.Fatal(err)
		}
		made = append(made, text)
	}
	if !bytes.Equal(made[0], made[1]) {
		t.Error("two archives of the same files differ")
	}
	zipped, err := gzip.NewReader(bytes.NewReader(made[0]))
	if err != nil {
		t.Fatal(err)
	}
	head, err := tar.NewReader(zipped).Next()
	if err != nil || head.Name != "interlock" || head.Mode != 0o755 {
		t.Errorf("%+v, %v", head, err)
	}
}

// The list of parts is read from the binary: that of this test names the modules that it is made of.
func TestParts_AreThoseOfTheBinary(t *testing.T) {
	r := &release{to: t.TempDir()}
	if err := r.listParts("a.cdx.json", os.Args[0]); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(r.to, "a.cdx.json"))
	if err != nil {
		t.Fatal(err)
	}
	var list struct {
		BOMFormat  string
		Components []part
	}
	if err := json.Unmarshal(text, &list); err != nil || list.BOMFormat != "CycloneDX" {
		t.Fatal(err, list)
	}
	found := false
	for _, p := range list.Components {
		found = found || strings.HasPrefix(p.PURL, "pkg:golang/golang.org/x/mod@v")
	}
	if !found {
		t.Errorf("%s has no golang.org/x/mod", text)
	}
}

func TestSums_AreThoseThatOthersCheck(t *testing.T) {
	r := &release{to: t.TempDir()}
	for _, name := range []string{"b", "a"} {
		if err := os.WriteFile(filepath.Join(r.to, name), []byte(name), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := r.writeSums(t.Context()); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(filepath.Join(r.to, "SHA256SUMS"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(file)
	if err != nil || strings.Count(string(text), "\n") != 2 || !strings.HasSuffix(string(text), "  b\n") {
		t.Errorf("%q, %v", text, err)
	}
	cmd := exec.Command("sha256sum", "-c", "SHA256SUMS")
	cmd.Dir = r.to
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
