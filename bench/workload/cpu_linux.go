package workload

import "github.com/interlock-go/interlock/bench/engined"

// clocksOf reads the clocks of other processes of this machine, and of those that they have started: PostgreSQL has one
// for each session, all started by its first one.
func clocksOf(pids []int) clocks {
	all := clocks{}
	for _, pid := range pids {
		all.read(pid)
		for _, child := range engined.Children(pid) {
			all.read(child)
		}
	}
	return all
}

// read reads the clock of a process, if it has not ended.
func (c clocks) read(pid int) {
	// As clock_getcpuclockid(3) makes it: the clock of all threads of the process, from the scheduler, to the
	// nanosecond.
	const allThreads = 2
	if ns, ok := cpuClock(int32(^pid<<3 | allThreads)); ok {
		c[pid] = ns
	}
}
