package workload

import (
	"time"

	"golang.org/x/sys/unix"
)

// ownCPU is how long this process has been running on processors, in its own code and in the system's for it, in
// nanoseconds; zero where the system does not tell.
func ownCPU() float64 {
	ns, _ := cpuClock(unix.CLOCK_PROCESS_CPUTIME_ID)
	return ns
}

// cpuClock reads a clock that counts a process's time on processors, if it is there. It costs a system call, and
// nothing to the process.
func cpuClock(id int32) (ns float64, ok bool) {
	var t unix.Timespec
	if unix.ClockGettime(id, &t) != nil {
		return 0, false
	}
	return float64(t.Nano()), true
}

// clocks are how long processes have been running on processors, in nanoseconds, by their numbers.
type clocks map[int]float64

// since returns what they all have used after before. A process that was not there then has begun since. What those
// used that have ended since is not known.
func (c clocks) since(before clocks) (sum float64) {
	for pid, now := range c {
		if then := before[pid]; then <= now {
			now -= then // otherwise it is another process that got the same number
		}
		sum += now
	}
	return sum
}

// cpuUsage measures what a time cost this process and the processes of a server on processors. Without any there is no
// server, or it is elsewhere.
type cpuUsage struct {
	server []int
	own    float64
	its    clocks
	since  time.Time
}

func startCPUUsage(server []int) cpuUsage {
	its := clocksOf(server) // before its own clock, as this costs this process something
	return cpuUsage{server: server, own: ownCPU(), its: its, since: time.Now()}
}

// spent returns nanoseconds of this process and of the server since the beginning.
func (b *cpuUsage) spent() (own, its float64) {
	own = ownCPU() - b.own // before the server's, for the same reason
	return own, clocksOf(b.server).since(b.its)
}

// shares returns the same as parts of one processor's time.
func (b *cpuUsage) shares() (own, its float64) {
	own, its = b.spent()
	d := float64(time.Since(b.since))
	return own / d, its / d
}
