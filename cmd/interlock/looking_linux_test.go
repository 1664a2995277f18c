package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
)

// ordinary is a folder with the command in it, which runs as a user who obeys modes, also if root tests.
type ordinary struct {
	t   *testing.T
	dir string
}

func newOrdinary(t *testing.T) *ordinary {
	t.Helper()
	dir, err := os.MkdirTemp("", "interlock-ordinary-") // the folders of a test are for its own user
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	self, err := os.ReadFile("/proc/self/exe")
	if err == nil {
		err = os.WriteFile(filepath.Join(dir, "interlock"), self, 0o755)
	}
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	if err != nil {
		t.Fatal(err)
	}
	return &ordinary{t, dir}
}

// run runs the command with HOME in the folder, and returns what it printed and its exit code.
func (o *ordinary) run(args ...string) (stdout, stderr string, code int) {
	o.t.Helper()
	cmd := exec.CommandContext(o.t.Context(), filepath.Join(o.dir, "interlock"), args...)
	cmd.Dir, cmd.Env = o.dir, []string{"HOME=" + o.dir, "PATH=" + os.Getenv("PATH"), "GORACE=atexit_sleep_ms=0"}
	if os.Geteuid() == 0 {
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	}
	var out, said strings.Builder
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil && cmd.ProcessState == nil {
		o.t.Fatal(err)
	}
	return out.String(), said.String(), cmd.ProcessState.ExitCode()
}

// locks makes a folder with the files of one lock that was used, which an ordinary user may read and not write.
func (o *ordinary) locks(name string) string {
	o.t.Helper()
	dir := filepath.Join(o.dir, name)
	if err := os.Mkdir(dir, 0o755); err != nil {
		o.t.Fatal(err)
	}
	run := exec.CommandContext(o.t.Context(), filepath.Join(o.dir, "interlock"), "run", "nightly", "--url",
		"file://"+dir, "--", "true")
	if out, err := run.CombinedOutput(); err != nil {
		o.t.Fatalf("%v: %s", err, out)
	}
	if err := os.Chmod(dir, 0o555); err != nil {
		o.t.Fatal(err)
	}
	return dir
}

// TestLooking_InAFolderThatMayNotBeWritten_Works says that commands that only look, and doctor, need no more than the
// right to read, whatever the URL says beside the folder.
func TestLooking_InAFolderThatMayNotBeWritten_Works(t *testing.T) {
	t.Parallel()
	o := newOrdinary(t)
	dir := o.locks("locks")
	for _, query := range []string{"", "?readonly=false", "?readonly=true"} {
		for _, args := range [][]string{{"ls"}, {"get", "nightly"}, {"top", "--once"}, {"break", "nightly", "--yes"}} {
			stdout, stderr, code := o.run(append(args, "--url", "file://"+dir+query)...)
			want := map[string]int{"get": exitNone, "break": exitNone}[args[0]]
			if code != want || strings.Contains(stderr, "denied") {
				t.Errorf("%v with %q: exit code %d, want %d; %s%s", args, query, code, want, stdout, stderr)
			}
		}
	}
	stdout, stderr, code := o.run("doctor", "file://"+dir)
	if code != 1 || !strings.Contains(stdout, "OK    reach") ||
		!strings.Contains(stdout, "WARN  lock         not tried: this user may not write "+dir+" (permission") ||
		!strings.Contains(stdout, dir+" can be read") || stderr != "" {
		t.Errorf("doctor: exit code %d\n%s%s", code, stdout, stderr)
	}
	stdout, _, code = o.run("doctor", "file://"+dir+"?readonly=true")
	if code != 0 || !strings.Contains(stdout, "OK  lock         not tried: the URL says readonly=true") {
		t.Errorf("doctor of a URL that looks only: exit code %d\n%s", code, stdout)
	}
}

// TestLooking_AtAFolderThatMayNotBeRead_SaysWhichRightItNeeds says so of the folder itself and of one above it.
func TestLooking_AtAFolderThatMayNotBeRead_SaysWhichRightItNeeds(t *testing.T) {
	t.Parallel()
	o := newOrdinary(t)
	closed := filepath.Join(o.dir, "closed")
	if err := os.Mkdir(closed, 0o700); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.Chmod(closed, 0o700) })
	if err := os.Chmod(closed, 0); err != nil {
		t.Fatal(err)
	}
	for _, dir := range []string{closed, filepath.Join(closed, "locks")} {
		_, stderr, code := o.run("ls", "--url", "file://"+dir)
		if code != exitUnavailable || strings.Contains(stderr, "readonly") ||
			!strings.Contains(stderr, "lock folder "+dir+": permission denied "+
				"(give this user the right to read the folder, or name another one)") {
			t.Errorf("%s: exit code %d, %s", dir, code, stderr)
		}
	}
}

// TestLooking_AtHome_MakesNothing says that the folder of the user's own locks comes with the first lock only, and that
// doctor tells whether it can come.
func TestLooking_AtHome_MakesNothing(t *testing.T) {
	t.Parallel()
	o := newOrdinary(t)
	for _, args := range [][]string{{"ls"}, {"get", "nightly"}, {"break", "nightly", "--yes"}} {
		if stdout, stderr, code := o.run(args...); strings.Contains(stdout+stderr, "warning") || code > exitNone {
			t.Errorf("%v: exit code %d; %s%s", args, code, stdout, stderr)
		}
	}
	stdout, _, code := o.run("doctor") // its home belongs to somebody else
	if os.Geteuid() == 0 && (code != 2 || !strings.Contains(stdout, "FAIL  reach  there is no folder") ||
		!strings.Contains(stdout, "may not make one in "+o.dir+": permission denied")) {
		t.Errorf("doctor where the folder cannot be made: exit code %d\n%s", code, stdout)
	}
	if err := os.Chmod(o.dir, 0o777); err != nil {
		t.Fatal(err)
	}
	stdout, _, code = o.run("doctor")
	if code != 0 || !strings.Contains(stdout, "/interlock/locks yet; the first lock makes it") ||
		!strings.Contains(stdout, "OK  lock   not tried, since that would make the folder") {
		t.Errorf("doctor before the first lock: exit code %d\n%s", code, stdout)
	}
	if _, err := os.Stat(filepath.Join(o.dir, ".local")); err == nil {
		t.Error("a command that only looks has made the folder")
	}
}
