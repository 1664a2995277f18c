package drivertest

import (
	"bytes"
	"context"
	"flag"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/interlock-go/interlock/internal/childproc"
)

// A conformance run in a process of its own, so that several run side by side.

// apartEnv names, in the environment, the test for which a process was started.
const apartEnv = "INTERLOCK_DRIVERTEST_APART"

// apartMargin is how much sooner such a process reaches its time limit than this one. Otherwise its output would be
// lost; and on a busy machine it may have begun long after its limit was computed.
const apartMargin = 30 * time.Second

// Apart has the test t run in a process of its own, beside other tests, and reports whether it has. If so, t has
// nothing left to do. [Run] waits for most of its time, and two of them cannot be in one process at once, because each
// counts goroutines.
//
//	func TestConformance_Cluster(t *testing.T) {
//		if drivertest.Apart(t) {
//			return
//		}
//		...
//	}
//
// It marks t as parallel, and fails or skips t as the process does. The process gets the flags of this one, so it runs
// what -run has chosen of t. [AtOnce] says how many run at once.
func Apart(t *testing.T) bool {
	t.Helper()
	if os.Getenv(apartEnv) == t.Name() {
		return false
	}
	t.Parallel()
	program, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	limit := time.Duration(0) // none
	if deadline, has := t.Deadline(); has {
		limit = max(time.Until(deadline)-apartMargin, time.Second) // it reports where it stood, so it has to end first
	}
	cmd := exec.CommandContext(t.Context(), program, apartFlags(t.Name(), limit)...)
	cmd.Env = append(os.Environ(), apartEnv+"="+t.Name())
	var said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &said, &said
	process, err := childproc.Start(cmd, nil)
	if err == nil {
		err = process.Err()
	}
	switch out := said.String(); {
	case err != nil:
		t.Fatalf("%v\n%s", err, out)
	case strings.Contains(out, "--- SKIP: "+t.Name()+" "):
		t.Skip(out)
	case !strings.Contains(out, "--- PASS: "+t.Name()+" "):
		t.Fatalf("the process did not run the test:\n%s", out)
	case testing.Verbose():
		t.Log(out)
	}
	return true
}

// apartFlags returns the flags of this process, except for files that two processes would write to, and restricted to
// this test.
func apartFlags(test string, limit time.Duration) []string {
	own := map[string]string{
		"v": "true", "count": "1", "timeout": limit.String(), "run": "^" + regexp.QuoteMeta(test) + "$", "skip": "",
		"testlogfile": "", "coverprofile": "", "cpuprofile": "", "memprofile": "", "blockprofile": "",
		"mutexprofile": "", "trace": "",
	}
	var flags []string
	flag.Visit(func(f *flag.Flag) {
		name, _ := strings.CutPrefix(f.Name, "test.")
		if name == "run" {
			if _, parts, has := strings.Cut(f.Value.String(), "/"); has {
				own["run"] += "/" + parts
			}
		} else if _, is := own[name]; !is {
			flags = append(flags, "-"+f.Name+"="+f.Value.String())
		}
	})
	for name, value := range own {
		flags = append(flags, "-test."+name+"="+value)
	}
	return flags
}

// AtOnce lets that many parallel tests run at once, unless the flag -parallel says how many. Without it there are as
// many as processors, which is too few for tests that wait. It is for TestMain, before it runs the tests.
func AtOnce(tests int) {
	if !flag.Parsed() {
		flag.Parse()
	}
	given := false
	flag.Visit(func(f *flag.Flag) { given = given || f.Name == "test.parallel" })
	if !given {
		_ = flag.Set("test.parallel", strconv.Itoa(tests)) // it fails only for what is no number
	}
}

// Awaited returns ctx as a context that tells when somebody begins to wait for its end. Everything that comes before
// the wait has happened by then. It is for tests.
func Awaited(ctx context.Context) (awaited context.Context, begun <-chan struct{}) {
	a := &waitedFor{Context: ctx, begun: make(chan struct{})}
	return a, a.begun
}

type waitedFor struct {
	context.Context //nolint:containedctx // it is a context

	begun chan struct{}
	once  sync.Once
}

// Done notes that somebody begins to wait.
func (a *waitedFor) Done() <-chan struct{} {
	a.once.Do(func() { close(a.begun) })
	return a.Context.Done()
}
