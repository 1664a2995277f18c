package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// In a namespace of its own a holder is "process 1", which is another one here.
func TestBreak_OfAHolderInAContainer_NamesItsProcessOfHere(t *testing.T) {
	t.Parallel()
	if exec.CommandContext(t.Context(), "unshare", "--fork", "--pid", "true").Run() != nil {
		t.Skip("no namespaces of process ids here")
	}
	dir := t.TempDir()
	url, up := "file://"+dir+"/locks", filepath.Join(dir, "up")
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	// The program is told by its name that it is the command.
	program := filepath.Join(dir, "interlock")
	if err := os.Symlink(self, program); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "unshare", "--fork", "--pid", "--kill-child", program, "run", "nightly",
		"--url", url, "--", "sh", "-c", "touch "+up+"; exec sleep 100")
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	for end := time.Now().Add(patience); ; <-time.After(5 * time.Millisecond) {
		if _, err := os.Stat(up); err == nil {
			break
		}
		if time.Now().After(end) {
			t.Fatal("the job does not run")
		}
	}
	children, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%[1]d/children", cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	want := "here: kill " + strings.TrimSpace(string(children)) + ", which is process 1 of a container"
	command(t, nil, "break", "nightly", "--yes", "--url", url).want(t, exitUsage, "", want)
}
