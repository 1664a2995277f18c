package engined

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Children returns the processes that the main thread of a process has started and that still run; none if it has
// ended. Of the servers of this package only PostgreSQL starts any, and its first process has no other thread. To look
// at every thread would cost a reading for each, of which some servers have dozens.
func Children(pid int) []int { return childrenOf(pid, strconv.Itoa(pid)) }

// ownChildren returns the processes that any thread of this process has started and that still run.
func ownChildren() (all []int) {
	pid := os.Getpid()
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // each knows its own
	for _, thread := range threads {
		all = append(all, childrenOf(pid, thread.Name())...)
	}
	return all
}

func childrenOf(pid int, thread string) (all []int) {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread))
	for field := range strings.FieldsSeq(string(text)) {
		if child, err := strconv.Atoi(field); err == nil {
			all = append(all, child)
		}
	}
	return all
}
