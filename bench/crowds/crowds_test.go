package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// BenchmarkCrowds runs each row with a hundredth of its crowd, so that none can rot. Its numbers say nothing.
func BenchmarkCrowds(b *testing.B) {
	settles, idleFor, stays, waits = 100*time.Millisecond, 200*time.Millisecond, 100*time.Millisecond, 100*time.Millisecond
	for b.Loop() {
		table, err := measure(plan(10), "")
		if err != nil {
			b.Fatal(err)
		}
		b.Log(table)
		if lines := strings.Count(table, "\n| "); lines != len(plan(10)) {
			b.Errorf("%d rows", lines)
		}
		if strings.Contains(table, " failed; ") && !strings.Contains(table, "0 lost, 0 failed") {
			b.Error("holds were lost")
		}
	}
}

func TestWrite_ReplacesWhatStandsBetweenTheMarks(t *testing.T) {
	file := filepath.Join(t.TempDir(), "page.md")
	if err := os.WriteFile(file, []byte("a\n"+beginMark+"old\n"+endMark+"z\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := write(file, "new\n"); err != nil {
		t.Fatal(err)
	}
	got, err := os.ReadFile(file)
	if want := "a\n" + beginMark + "\nnew\n\n" + endMark + "z\n"; err != nil || string(got) != want {
		t.Errorf("got %q, %v", got, err)
	}
	if err := write(filepath.Join(t.TempDir(), "none.md"), ""); err == nil {
		t.Error("a page that is not there is written")
	}
}
