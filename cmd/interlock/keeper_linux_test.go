package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/interlock-go/interlock/internal/servers"
)

// TestRun_WithoutProc_SaysWhatItNeeds runs the command where no /proc is mounted, so that no keeper can be started.
func TestRun_WithoutProc_SaysWhatItNeeds(t *testing.T) {
	t.Parallel()
	if os.Geteuid() != 0 {
		t.Skip("only root can hide /proc")
	}
	o := newOrdinary(t)
	cmd := exec.CommandContext(t.Context(), "sh", "-c", `mount -t tmpfs none /proc || exit 99
exec "$@"`, "sh", filepath.Join(o.dir, "interlock"), "run", "nightly", "--url",
		"redis://"+servers.Redis(t)+"?check=none", "--", "touch", filepath.Join(o.dir, "ran"))
	cmd.Env = append(os.Environ(), "GORACE=atexit_sleep_ms=0")
	cmd.SysProcAttr = &syscall.SysProcAttr{Unshareflags: syscall.CLONE_NEWNS}
	out, err := cmd.CombinedOutput()
	if cmd.ProcessState == nil || cmd.ProcessState.ExitCode() == 99 {
		t.Skipf("no mount namespace here: %v", err)
	}
	if cmd.ProcessState.ExitCode() != exitFailed ||
		!strings.Contains(string(out), "there is no /proc/self/exe; mount /proc, or keep the locks in files") {
		t.Errorf("exit code %d, %s", cmd.ProcessState.ExitCode(), out)
	}
	if _, err := os.Stat(filepath.Join(o.dir, "ran")); err == nil {
		t.Error("the command ran without a keeper")
	}
}

// TestKeeper_TakesWhatItIsTold_AlsoInParts says that a line may come in two reads, and that what is none changes
// nothing.
func TestKeeper_TakesWhatItIsTold_AlsoInParts(t *testing.T) {
	t.Parallel()
	var w watched
	for _, part := range []string{"gro", "up 12", "34\nuntil 5", "6\nuntil x\nelse 7\n", "until 9"} {
		w.take(part)
	}
	if w.group != 1234 || w.until != 56 || w.rest != "until 9" {
		t.Errorf("got %+v", w)
	}
}
