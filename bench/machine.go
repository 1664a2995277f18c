package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"

	"github.com/interlock-go/interlock/filelock"
)

// describeMachine says in one line what was measured on, as far as the system tells. The load is that before the run:
// other work on the machine is not the benchmark's, but in its numbers.
func describeMachine(ctx context.Context, dir string) string {
	parts := []string{
		runtime.Version() + " " + runtime.GOOS + "/" + runtime.GOARCH,
		fmt.Sprintf("%d processors", runtime.NumCPU()),
		fmt.Sprintf("GOMAXPROCS %d", runtime.GOMAXPROCS(0)),
	}
	if model := field("/proc/cpuinfo", "model name"); model != "" {
		parts = append(parts, model)
	}
	if kernel := firstLine("/proc/sys/kernel/osrelease"); kernel != "" {
		parts = append(parts, "kernel "+kernel)
	}
	if system := fileSystem(ctx, dir); system != "" {
		parts = append(parts, system)
	}
	if load := strings.Fields(firstLine("/proc/loadavg")); len(load) > 0 {
		parts = append(parts, "load before the run "+load[0])
	}
	return strings.Join(parts, ", ") + "."
}

// fileSystem asks filelock's own diagnosis.
func fileSystem(ctx context.Context, dir string) string {
	if dir == "" {
		dir = os.TempDir()
	}
	d, err := filelock.New(dir, nil)
	if err != nil {
		return ""
	}
	defer d.Close()
	for _, f := range d.Diagnose(ctx) {
		if f.Check == "file system" {
			return f.Detail
		}
	}
	return ""
}

// field returns the value behind the first line of file that starts with key and a colon.
func field(file, key string) string {
	text, _ := os.ReadFile(file) // a system without it has nothing to tell
	for l := range strings.Lines(string(text)) {
		if k, v, ok := strings.Cut(l, ":"); ok && strings.TrimSpace(k) == key {
			return strings.TrimSpace(v)
		}
	}
	return ""
}

func firstLine(file string) string {
	text, _ := os.ReadFile(file) // a system without it has nothing to tell
	first, _, _ := strings.Cut(string(text), "\n")
	return first
}
