package engined

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

// stage is what a test is to the test kit. It has those methods of a test that the kit calls; the others are of the nil in
// it.
type stage struct {
	testing.TB
	base string // the folder of its folders

	mu      sync.Mutex // guards what follows
	folders int
	ends    []func()
	err     error
}

// play runs f as a test runs, and returns what it failed with. It is for one goroutine at a time: what others fail with
// meanwhile would be taken for this one's.
func (s *stage) play(f func()) error {
	s.mu.Lock()
	s.err = nil
	s.mu.Unlock()
	var done sync.WaitGroup
	done.Go(f) // a failure ends its goroutine, as it ends that of a test
	done.Wait()
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err
}

// end calls what is to be done at the end, last first.
func (s *stage) end() error {
	s.mu.Lock()
	ends := s.ends
	s.ends = nil
	s.mu.Unlock()
	for i := len(ends) - 1; i >= 0; i-- {
		ends[i]()
	}
	return os.RemoveAll(s.base)
}

func (s *stage) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.err = errors.Join(s.err, err)
}

// Helper does nothing.
func (*stage) Helper() {}

// Cleanup has f called at the end.
func (s *stage) Cleanup(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ends = append(s.ends, f)
}

// TempDir returns a new folder.
func (s *stage) TempDir() string {
	s.mu.Lock()
	s.folders++
	dir := filepath.Join(s.base, strconv.Itoa(s.folders))
	s.mu.Unlock()
	if err := os.Mkdir(dir, 0o700); err != nil {
		s.Fatal(err)
	}
	return dir
}

// Failed reports whether something has failed.
func (s *stage) Failed() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.err != nil
}

// Log does nothing: what matters is in the error.
func (*stage) Log(...any) {}

// Logf does nothing.
func (*stage) Logf(string, ...any) {}

// Error fails.
func (s *stage) Error(args ...any) { s.fail(errors.New(fmt.Sprint(args...))) }

// Errorf fails.
func (s *stage) Errorf(format string, args ...any) { s.fail(fmt.Errorf(format, args...)) }

// Fatal fails and ends the goroutine.
func (s *stage) Fatal(args ...any) {
	s.Error(args...)
	runtime.Goexit()
}

// Fatalf fails and ends the goroutine.
func (s *stage) Fatalf(format string, args ...any) {
	s.Errorf(format, args...)
	runtime.Goexit()
}

// Skip fails with ErrMissing and ends the goroutine.
func (s *stage) Skip(args ...any) {
	s.fail(fmt.Errorf("%w: %s", ErrMissing, fmt.Sprint(args...)))
	runtime.Goexit()
}

// Skipf fails with ErrMissing and ends the goroutine.
func (s *stage) Skipf(format string, args ...any) { s.Skip(fmt.Sprintf(format, args...)) }
