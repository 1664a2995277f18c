package servers

import (
	"context"
	"time"
)

const (
	// pollPause is how long a condition that is not met is left alone.
	pollPause = 20 * time.Millisecond

	// pollOnce bounds one look at a condition: the server that it asks may hang.
	pollOnce = 2 * time.Second
)

// poll returns nil as soon as ready does, or, when ctx has ended, what ready said last before.
func poll(ctx context.Context, ready func(ctx context.Context) error) error {
	pause := time.NewTicker(pollPause)
	defer pause.Stop()
	var last error
	for {
		once, cancel := context.WithTimeout(ctx, pollOnce)
		err := ready(once)
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
