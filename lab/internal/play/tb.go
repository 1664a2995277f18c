package play

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
)

// ErrMissing says that a server is not installed.
var ErrMissing = errors.New("a server is missing")

// program is what a test is to the kit that starts servers, when the lab runs as a program. It has those methods of a test
// that are called here; the others are of the nil in it.
type program struct {
	testing.TB
	ctx  context.Context //nolint:containedctx // a test carries its context, so what stands in for one does too
	base string          // the folder of its folders

	mu      sync.Mutex // guards what follows
	folders int
	ends    []func()
	err     error
}

// Alone runs f outside of a test and returns what it failed with; what was started is ended then.
func Alone(ctx context.Context, f func(t testing.TB)) (err error) {
	base, err := os.MkdirTemp("", "interlock-lab-")
	if err != nil {
		return err
	}
	p := &program{ctx: ctx, base: base}
	var done sync.WaitGroup
	done.Go(func() { f(p) }) // a failure ends its goroutine, as it ends that of a test
	done.Wait()
	p.end()
	return errors.Join(p.failure(), os.RemoveAll(base))
}

// end calls what is to be done at the end, last first, including what that adds.
func (p *program) end() {
	for {
		p.mu.Lock()
		n := len(p.ends)
		if n == 0 {
			p.mu.Unlock()
			return
		}
		last := p.ends[n-1]
		p.ends = p.ends[:n-1]
		p.mu.Unlock()
		var done sync.WaitGroup
		done.Go(last) // it may fail as well
		done.Wait()
	}
}

func (p *program) failure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.err
}

func (p *program) fail(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.err = errors.Join(p.err, err)
}

// Context ends when the program is told to end.
func (p *program) Context() context.Context { return p.ctx }

// Helper does nothing.
func (*program) Helper() {}

// Cleanup has f called at the end.
func (p *program) Cleanup(f func()) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.ends = append(p.ends, f)
}

// TempDir returns a new folder.
func (p *program) TempDir() string {
	p.mu.Lock()
	p.folders++
	dir := filepath.Join(p.base, strconv.Itoa(p.folders))
	p.mu.Unlock()
	if err := os.Mkdir(dir, 0o700); err != nil {
		p.Fatal(err)
	}
	return dir
}

// Failed reports whether something has failed.
func (p *program) Failed() bool { return p.failure() != nil }

// Log does nothing: what matters is in the error.
func (*program) Log(...any) {}

// Logf does nothing.
func (*program) Logf(string, ...any) {}

// Error fails.
func (p *program) Error(args ...any) { p.fail(errors.New(fmt.Sprint(args...))) }

// Errorf fails.
func (p *program) Errorf(format string, args ...any) { p.fail(fmt.Errorf(format, args...)) }

// Fatal fails and ends the goroutine.
func (p *program) Fatal(args ...any) {
	p.Error(args...)
	runtime.Goexit()
}

// Fatalf fails and ends the goroutine.
func (p *program) Fatalf(format string, args ...any) {
	p.Errorf(format, args...)
	runtime.Goexit()
}

// Skip fails with ErrMissing and ends the goroutine.
func (p *program) Skip(args ...any) {
	p.fail(fmt.Errorf("%w: %s", ErrMissing, fmt.Sprint(args...)))
	runtime.Goexit()
}

// Skipf fails with ErrMissing and ends the goroutine.
func (p *program) Skipf(format string, args ...any) { p.Skip(fmt.Sprintf(format, args...)) }
