package workload

// cpuOf is as ownCPU for another process of this machine; 0 is no process.
func cpuOf(pid int) float64 {
	if pid == 0 {
		return 0
	}
	// As clock_getcpuclockid(3) makes it: the clock of all threads of the process, from the scheduler, to the nanosecond.
	const allThreads = 2
	return cpuClock(int32(^pid<<3 | allThreads))
}
