//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import "time"

// A driver that gives a lock back and asks for it again at once may keep it although others wait, until its turn is over:
// handing over costs a process switch, which is many times a short critical section. That is what the portable layer's
// local passes do for goroutines that wait at the same time; this is for one that comes back.
//
// Measured with 8 processes on two cores (bench/README.md): without turns, holds of 20 microseconds reach a small part of
// what bare flock does. Bare flock hands over only when the scheduler happens to, which starves waiters for long; a turn
// ends after turnTime, and the next in line gets in.
const (
	turnTime = time.Millisecond
	// comeback is how soon who gave back has to ask again. It is about what a waiter needs to wake up.
	comeback = 100 * time.Microsecond
)

// turn is kept in the open file, because a driver that comes back finds it among the idle ones.
type turn struct {
	began time.Time // when the lock was got in line, or with nobody waiting
	freed time.Time // when it was given back
}

// lasts reports whether the driver may go on before those who wait.
func (t *turn) lasts(now time.Time) bool {
	return now.Sub(t.freed) < comeback && now.Sub(t.began) < turnTime
}
