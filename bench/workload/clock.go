package workload

import (
	"errors"
	"time"

	"golang.org/x/sys/unix"
)

// monotonic reads the clock that all processes of this machine share and nobody sets, in nanoseconds. That of package
// time cannot be compared between processes.
func monotonic() (int64, error) {
	var t unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &t); err != nil {
		return 0, err
	}
	return t.Nano(), nil
}

// lookEvery is how often somebody looks at the board who waits for another process. It takes the processor each time,
// so nobody looks while a wait is measured.
const lookEvery = time.Millisecond

// errPartnerGone says that another process of the job did not do its part.
var errPartnerGone = errors.New("another process of the job hangs or has ended")

// until returns when yes does, and errPartnerGone if that takes longer than atMost.
func until(atMost time.Duration, yes func() bool) error {
	tick := time.NewTicker(lookEvery)
	defer tick.Stop()
	for begin := time.Now(); !yes(); <-tick.C {
		if time.Since(begin) > atMost {
			return errPartnerGone
		}
	}
	return nil
}
