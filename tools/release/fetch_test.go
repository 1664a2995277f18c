package main

import (
	"os"
	"strings"
	"testing"
	"time"
)

// What the proofs use is what everybody gets from the tags, to the byte: otherwise the sums in go.sum are wrong.
func TestStage_MakesWhatGoFetchesFromTheTags(t *testing.T) {
	const path = "github.com/interlock-go/interlock"
	dir := repository(t, map[string]string{
		"LICENSE": "as you like\n",
		"go.mod":  "module " + path + "\n\ngo 1.25.0\n", "interlock.go": "package interlock\n",
		"engine/go.mod": "module " + path + "/engine\n\ngo 1.25.0\n\nrequire " + path + " v0.0.0\n\n" +
			"replace " + path + " => ..\n",
		"engine/engine.go":   "package engine\n\nimport _ \"" + path + "\"\n",
		"scripts/modules.sh": "#!/bin/sh\necho . engine\n",
	})
	r := &release{
		from: dir, to: t.TempDir(), work: t.TempDir(), version: "v0.1.0",
		when: time.Date(2026, 11, 26, 10, 0, 0, 0, time.UTC),
	}
	if err := r.stage(t.Context()); err != nil {
		t.Fatal(err)
	}
	before := r.repository()
	if err := r.fetch(t.Context()); err != nil {
		t.Error(err)
	}
	// A proxy with the files of the commit before is found out.
	for _, m := range r.modules {
		if err := r.zip(t.Context(), m, r.version, "v0.0.1"); err != nil {
			t.Fatal(err)
		}
	}
	r.work = t.TempDir()
	if err := os.CopyFS(r.repository(), os.DirFS(before)); err != nil {
		t.Fatal(err)
	}
	if err := r.fetch(t.Context()); err == nil || !strings.Contains(err.Error(), "engine") {
		t.Errorf("with other files in the proxy: %v", err)
	}
}
