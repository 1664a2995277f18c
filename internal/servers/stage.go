package servers

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
)

// ErrMissing says that a server is not installed. The message says what to install.
var ErrMissing = errors.New("a server is missing")

// Stage is for programs that start servers and are no tests, such as examples and benchmarks: it plays the test. On
// Linux its servers end at the latest with the process.
type Stage struct {
	actor actor
}

// actor is what a test is to this package. It has those methods of a test that the package calls; the others are of the
// nil in it.
type actor struct {
	testing.TB
	base string // the folder of its folders

	remove func() error // removes base

	mu      sync.Mutex // guards what follows
	folders int
	ends    []func()
	err     error
}

// NewStage returns a stage whose servers keep their data below a new folder of the system's temporary ones. It removes
// those of processes that were killed.
func NewStage() (*Stage, error) {
	base, remove, err := newFolder("interlock-servers-")
	if err != nil {
		return nil, err
	}
	return &Stage{actor: actor{base: base, remove: remove}}, nil
}

// Play runs f with a test to start servers with, and returns what f made it fail with. A server that is not installed
// makes it ErrMissing. It is for one goroutine at a time: what others fail with meanwhile would
// be taken for this one's.
func (s *Stage) Play(f func(t testing.TB)) error {
	a := &s.actor
	a.mu.Lock()
	a.err = nil
	a.mu.Unlock()
	var done sync.WaitGroup
	done.Go(func() { f(a) }) // a failure ends its goroutine, as it ends that of a test
	done.Wait()
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err
}

// Close kills the servers, last first, and removes their data. A clean-up may leave another one to do, as in a test.
func (s *Stage) Close() error {
	a := &s.actor
	for end := a.lastEnd(); end != nil; end = a.lastEnd() {
		end()
	}
	return a.remove()
}

// lastEnd takes the clean-up that was registered last, or returns nil if none is left.
func (a *actor) lastEnd() func() {
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.ends) == 0 {
		return nil
	}
	last := len(a.ends) - 1
	end := a.ends[last]
	a.ends = a.ends[:last]
	return end
}

func (a *actor) fail(err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.err = errors.Join(a.err, err)
}

// Helper does nothing.
func (*actor) Helper() {}

// Cleanup has f called at the end.
func (a *actor) Cleanup(f func()) {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.ends = append(a.ends, f)
}

// TempDir returns a new folder.
func (a *actor) TempDir() string {
	a.mu.Lock()
	a.folders++
	dir := filepath.Join(a.base, strconv.Itoa(a.folders))
	a.mu.Unlock()
	if err := os.Mkdir(dir, 0o700); err != nil {
		a.Fatal(err)
	}
	return dir
}

// Failed reports whether something has failed.
func (a *actor) Failed() bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.err != nil
}

// Log does nothing: what matters is in the error.
func (*actor) Log(...any) {}

// Logf does nothing.
func (*actor) Logf(string, ...any) {}

// Error fails.
func (a *actor) Error(args ...any) { a.fail(errors.New(fmt.Sprint(args...))) }

// Errorf fails.
func (a *actor) Errorf(format string, args ...any) { a.fail(fmt.Errorf(format, args...)) }

// Fatal fails and ends the goroutine.
func (a *actor) Fatal(args ...any) {
	a.Error(args...)
	runtime.Goexit()
}

// Fatalf fails and ends the goroutine.
func (a *actor) Fatalf(format string, args ...any) {
	a.Errorf(format, args...)
	runtime.Goexit()
}

// Skip fails with ErrMissing and ends the goroutine.
func (a *actor) Skip(args ...any) {
	a.fail(fmt.Errorf("%w: %s", ErrMissing, fmt.Sprint(args...)))
	runtime.Goexit()
}

// Skipf fails with ErrMissing and ends the goroutine.
func (a *actor) Skipf(format string, args ...any) { a.Skip(fmt.Sprintf(format, args...)) }
