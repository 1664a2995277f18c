package workload

import (
	"fmt"
	"os"
	"strconv"

	"golang.org/x/sys/unix"
)

// Apart needs two processors.
const (
	clientProcessor = 0
	serverProcessor = 1
)

// pin keeps a process, or this one if pid is zero, on one processor: all of its threads, and so those that they start.
func pin(pid, processor int) error {
	var set unix.CPUSet
	set.Set(processor)
	return place(pid, &set)
}

// unpin lets a process run where this one may.
func unpin(pid int) error {
	var set unix.CPUSet
	if err := unix.SchedGetaffinity(0, &set); err != nil {
		return err
	}
	return place(pid, &set)
}

func place(pid int, set *unix.CPUSet) error {
	of := "self"
	if pid != 0 {
		of = strconv.Itoa(pid)
	}
	threads, err := os.ReadDir("/proc/" + of + "/task")
	if err != nil {
		return err
	}
	for _, t := range threads {
		id, err := strconv.Atoi(t.Name())
		if err != nil {
			continue
		}
		if err := unix.SchedSetaffinity(id, set); err != nil && err != unix.ESRCH { // a thread may have ended
			return fmt.Errorf("keeping a process on some processors: %w", err)
		}
	}
	return nil
}
