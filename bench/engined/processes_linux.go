package engined

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Children returns the processes that a process has started and that still run; none if it has ended.
func Children(pid int) (all []int) {
	threads, _ := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid)) // each knows its own
	for _, thread := range threads {
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/task/%s/children", pid, thread.Name()))
		for field := range strings.FieldsSeq(string(text)) {
			if child, err := strconv.Atoi(field); err == nil {
				all = append(all, child)
			}
		}
	}
	return all
}
