package servers

import (
	"context"
	_ "embed" // the shim
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"testing"
	"time"
)

//go:embed shim/clock.c
var clockShim []byte

// Clock is a wall clock that a test can set, for the servers that are started with it. Time that only grows (the
// monotonic clock) is not touched. A small library answers in the place of the C library when such a server asks for
// the time; it is compiled for each clock, so there must be a C compiler, and it works on Linux.
type Clock struct {
	t       testing.TB
	library string
	file    *os.File // which the library has mapped: by how many nanoseconds to be wrong
}

// clockNeeds is the compiler.
var clockNeeds = &Spec{
	Name: "clock", Binaries: []string{"cc", "gcc", "clang"}, Install: "a C compiler (gcc on Debian, Ubuntu)",
}

// clockCompiler returns the path of a compiler, or else what is missing.
func clockCompiler() (path, lacks string) {
	if runtime.GOOS != "linux" {
		return "", "clocks can be set on Linux only"
	}
	return clockNeeds.lookUp()
}

// ClockWaived says why there can be no [Clock] here, if that is so and what needs one may be skipped.
func ClockWaived() error {
	compiler, lacks := clockCompiler()
	if compiler != "" || Required("all", clockNeeds.Name) {
		return nil
	}
	return fmt.Errorf("%s: install %s", lacks, clockNeeds.Install)
}

// NewClock returns a clock that is right, or skips or fails t as a missing server does:
// INTERLOCK_REQUIRE calls it clock.
func NewClock(t testing.TB) *Clock {
	t.Helper()
	if shortOf("all", clockNeeds.Name) {
		t.Skip("it needs a clock for a server, and -short starts none")
	}
	compiler, lacks := clockCompiler()
	if compiler == "" {
		clockNeeds.missing(t, lacks)
	}
	dir := t.TempDir()
	c := &Clock{t: t, library: filepath.Join(dir, "clock.so")}
	source := filepath.Join(dir, "clock.c")
	if err := os.WriteFile(source, clockShim, 0o600); err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), startTimeout)
	defer cancel()
	if out, err := exec.CommandContext(ctx, compiler, "-O2", "-shared", "-fPIC", "-pthread", "-o", c.library,
		source).CombinedOutput(); err != nil {
		t.Fatalf("compiling a clock: %v\n%s", err, out)
	}
	var err error
	if c.file, err = os.Create(filepath.Join(dir, "ahead")); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.file.Close() }) // read by nobody any more
	c.Set(0)
	return c
}

// Set has the clock go ahead of the right time by that much, or behind it if it is negative.
func (c *Clock) Set(ahead time.Duration) {
	c.t.Helper()
	//nolint:gosec // as two's complement
	if _, err := c.file.WriteAt(binary.NativeEndian.AppendUint64(nil, uint64(ahead)), 0); err != nil {
		c.t.Fatalf("setting a clock: %v", err)
	}
}

// env is what a server's environment must have.
func (c *Clock) env() []string {
	if c == nil {
		return nil
	}
	return []string{"LD_PRELOAD=" + c.library, "INTERLOCK_CLOCK=" + c.file.Name()}
}
