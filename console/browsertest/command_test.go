package browsertest

import (
	"bufio"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"syscall"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/browser"
	"github.com/interlock-go/interlock/internal/childproc"
	"github.com/interlock-go/interlock/internal/servers"
)

// command builds the command with every engine, from the workspace: a module of its own cannot be imported here.
func command(t *testing.T) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "interlock")
	cmd := exec.CommandContext(t.Context(),
		"go", "build", "-tags=full", "-buildvcs=false", "-ldflags=-w", "-o", path, ".")
	cmd.Dir = filepath.Join("..", "..", "cmd", "interlock")
	cmd.Env = append(os.Environ(), "GOWORK=", "GOFLAGS=")
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v: %v\n%s", cmd, err, out)
	}
	return path
}

// begin starts the command with an engine and returns its standard output. It ends with the test; its standard
// input stays open until then.
func begin(t *testing.T, path, engine string, args ...string) *bufio.Reader {
	t.Helper()
	cmd := exec.CommandContext(context.WithoutCancel(t.Context()), path, args...) // ended by the cleanup below
	cmd.Env = append(os.Environ(), "INTERLOCK_URL="+engine)
	cmd.Stderr = t.Output()
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	process, err := childproc.Start(cmd, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = in.Close()
		_ = process.Signal(syscall.SIGTERM) // each of these fails if it has ended by itself
		select {
		case <-process.Exited():
		case <-time.After(browser.Patience):
			t.Errorf("%v does not end", cmd)
			process.Kill()
		}
	})
	return bufio.NewReader(out)
}

var pageLine = regexp.MustCompile(`^console: (http://\S+) `)

func TestCommand_ShowsAndBreaksLocksOnRedis(t *testing.T) {
	p := newTab(t) // first: without a browser nothing has to be built
	engine := "redis://" + servers.Redis(t)
	interlock := command(t)
	out := begin(t, interlock, engine, "console", "--listen=127.0.0.1:0", "--allow-break", "--interval=100ms")
	line, err := out.ReadString('\n')
	found := pageLine.FindStringSubmatch(line)
	if err != nil || found == nil {
		t.Fatalf("the command printed %q, %v", line, err)
	}
	begin(t, interlock, engine, "run", "--kill-grace=1s", "nightly", "--", "cat")
	p.open(found[1] + "?lang=en")
	p.Shows("tr[data-id='mutex/nightly'] .c-name", "nightly")
	p.Shows("#engine", engine)
	begin(t, interlock, engine, "run", "nightly", "--", "true")
	p.Shows("tr[data-id='mutex/nightly'] .c-waiters", "1")
	p.Click("tr[data-id='mutex/nightly']")
	p.Click("#detail [data-break]")
	p.Press("nightly\r")
	p.Shows("#break-result", "Broken")
	// The one that waited got the lock, and is done.
	p.Shows("#empty", "No lock is held or waited for.")
	p.Click(".tabs a[data-view=engine]")
	p.Click("#examine")
	p.Shows(".findings", "reach")
}
