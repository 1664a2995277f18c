package workload

import "github.com/interlock-go/interlock/bench/engined"

// cpuOf is as ownCPU for other processes of this machine and all that they have started: PostgreSQL has one for each session.
// What those used that ended meanwhile is lost.
func cpuOf(pids []int) (sum float64) {
	for _, pid := range pids {
		sum += cpuOfOne(pid) + cpuOf(engined.Children(pid))
	}
	return sum
}

func cpuOfOne(pid int) float64 {
	// As clock_getcpuclockid(3) makes it: the clock of all threads of the process, from the scheduler, to the nanosecond.
	const allThreads = 2
	return cpuClock(int32(^pid<<3 | allThreads))
}
