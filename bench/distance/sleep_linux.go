package distance

import (
	"time"

	"golang.org/x/sys/unix"
)

// sleepExactly makes sleeps of this thread end when they should. By itself Linux lets them last 50 µs longer, so that
// it has to wake up less often.
func sleepExactly() {
	_ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) // without it all is 50 µs later, which RoundTrip shows
}

// sleepUntil keeps the thread asleep.
func sleepUntil(at time.Time) {
	for {
		left := time.Until(at)
		if left <= 0 {
			return
		}
		t := unix.NsecToTimespec(int64(left))
		_ = unix.Nanosleep(&t, nil) // a signal may have interrupted it
	}
}
