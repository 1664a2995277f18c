package workload

import (
	"time"

	"golang.org/x/sys/unix"
)

// ownCPU is how long this process has been running on processors, in its own code and in the system's for it, in
// nanoseconds; zero where the system does not tell.
func ownCPU() float64 { return cpuClock(unix.CLOCK_PROCESS_CPUTIME_ID) }

// cpuClock reads a clock that counts a process's time on processors. It costs a system call, and nothing to the process.
func cpuClock(id int32) float64 {
	var t unix.Timespec
	if unix.ClockGettime(id, &t) != nil {
		return 0
	}
	return float64(t.Nano())
}

// burnt measures what a time cost this process and the processes of a server on processors. Without any it is one that is elsewhere.
type burnt struct {
	server   []int
	own, its float64
	since    time.Time
}

func beginBurning(server []int) burnt {
	return burnt{server: server, own: ownCPU(), its: cpuOf(server), since: time.Now()}
}

// spent returns nanoseconds of this process and of the server since the beginning.
func (b *burnt) spent() (own, its float64) { return ownCPU() - b.own, cpuOf(b.server) - b.its }

// shares returns the same as parts of one processor's time.
func (b *burnt) shares() (own, its float64) {
	own, its = b.spent()
	d := float64(time.Since(b.since))
	return own / d, its / d
}
