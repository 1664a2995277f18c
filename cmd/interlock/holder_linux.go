// Which process of here a holder is, whose id may be that of a container; see holder.go.

package main

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// processHere returns the id that a process has here which calls itself pid and has a file of the folder open. A
// container may share our host's name and still count its processes by itself, so that its holder is "process 1".
//
// It returns 0 if there is none. Of a process whose files this user may not see it returns pid: it is most likely that.
func processHere(pid int, folder string) int {
	open, known := hasOpen(pid, folder)
	if open || !known {
		return pid
	}
	stats, _ := filepath.Glob("/proc/[0-9]*/status") // the pattern is right
	for _, path := range stats {
		here, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		if err != nil || !callsItself(path, pid) {
			continue
		}
		if open, _ := hasOpen(here, folder); open {
			return here
		}
	}
	return 0
}

// callsItself reports whether a process of a container has this id there. The line has its id in each namespace, from
// ours to its own.
func callsItself(status string, pid int) bool {
	content, _ := os.ReadFile(status) // it may have ended
	_, line, _ := strings.Cut(string(content), "\nNSpid:")
	line, _, _ = strings.Cut(line, "\n")
	ids := strings.Fields(line)
	return len(ids) > 1 && ids[len(ids)-1] == strconv.Itoa(pid)
}

// hasOpen reports whether a process has a file of the folder open, and whether that can be known. Files are compared
// and not paths: a container may have the folder elsewhere.
func hasOpen(pid int, folder string) (open, known bool) {
	files := "/proc/" + strconv.Itoa(pid) + "/fd/"
	entries, err := os.ReadDir(files)
	if err != nil {
		return false, os.IsNotExist(err)
	}
	for _, entry := range entries {
		path, err := os.Readlink(files + entry.Name())
		if err != nil {
			continue // closed since
		}
		theirs, err := os.Stat(files + entry.Name())
		if err != nil {
			continue
		}
		ours, err := os.Stat(filepath.Join(folder, filepath.Base(path)))
		if err == nil && os.SameFile(theirs, ours) {
			return true, true
		}
	}
	return false, true
}
