package filelock

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// sleepingThreads counts this process's threads that are in flock or fcntl.
func sleepingThreads(t *testing.T) int {
	t.Helper()
	files, err := filepath.Glob("/proc/self/task/*/syscall")
	if err != nil || len(files) == 0 {
		skip(t, "/proc does not tell what threads do")
	}
	n := 0
	for _, file := range files {
		text, err := os.ReadFile(file)
		if errors.Is(err, os.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has ended
		}
		if err != nil {
			skip(t, err.Error())
		}
		number, _, _ := strings.Cut(string(text), " ")
		if number == strconv.Itoa(syscall.SYS_FLOCK) || number == strconv.Itoa(syscall.SYS_FCNTL) {
			n++
		}
	}
	return n
}

func descriptors(t *testing.T) int {
	t.Helper()
	_, _ = os.ReadFile("/proc/self/stat") // makes the runtime open its poller, which would be counted only later
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}

func countThreads(t *testing.T) int {
	t.Helper()
	entries, err := os.ReadDir("/proc/self/task")
	if err != nil {
		t.Fatal(err)
	}
	return len(entries)
}
