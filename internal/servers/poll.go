package servers

import (
	"context"
	"time"
)

const (
	// pollPause is how long a condition that is not met is left alone.
	pollPause = 20 * time.Millisecond

	// pollOnce bounds one look at a condition: the server that it asks may hang. After each look that was cut off the
	// next gets twice the time, because a look that asks several servers may take longer on a busy machine.
	pollOnce = 2 * time.Second
)

// poll returns nil as soon as ready does, or, when ctx has ended, what ready said last before.
func poll(ctx context.Context, ready func(ctx context.Context) error) error {
	pause := time.NewTicker(pollPause)
	defer pause.Stop()
	var last error
	for limit := pollOnce; ; {
		once, cancel := context.WithTimeout(ctx, limit)
		err := ready(once)
		if once.Err() != nil {
			limit *= 2
		}
		cancel()
		if err == nil {
			return nil
		}
		if last == nil || ctx.Err() == nil { // otherwise it says only that the time is over
			last = err
		}
		select {
		case <-pause.C:
		case <-ctx.Done():
			return last
		}
	}
}
