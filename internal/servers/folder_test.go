//go:build unix

package servers

import (
	"os"
	"path/filepath"
	"testing"
)

// The lab, the examples and the benchmarks may be killed, also by the end of their terminal.
func TestNewFolder_RemovesWhatKilledProcessesHaveLeft(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	is := func(dir string, want bool) {
		t.Helper()
		if _, err := os.Stat(dir); (err == nil) != want {
			t.Errorf("%s: %v, want it there: %v", dir, err, want)
		}
	}
	const prefix = "interlock-x-"
	killed, err := os.MkdirTemp("", prefix) // as newFolder leaves it whose process the kernel has ended
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{aliveName, "dump.rdb"} {
		if err := os.WriteFile(filepath.Join(killed, name), nil, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	strange, err := os.MkdirTemp("", prefix)
	if err != nil {
		t.Fatal(err)
	}
	alive, removeAlive, err := newFolder(prefix)
	if err != nil {
		t.Fatal(err)
	}
	is(killed, false)
	next, removeNext, err := newFolder(prefix)
	if err != nil {
		t.Fatal(err)
	}
	is(alive, true)
	is(next, true)
	is(strange, true)
	for _, remove := range []func() error{removeAlive, removeNext} {
		if err := remove(); err != nil {
			t.Error(err)
		}
	}
	is(alive, false)
	is(next, false)
}
