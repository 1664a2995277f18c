package run

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/worker"
)

// watchLag has this process, which has the proxies, note when it was not run, as each client does, until end is called.
func (r *run) watchLag(ctx context.Context) (end func() error, err error) {
	log, err := history.Create(r.Dir, "coordinator")
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan struct{})
	go func() { // ends with end
		defer close(done)
		worker.WatchLag(ctx, Coordinator, log)
	}()
	return func() error {
		cancel()
		<-done
		return log.Close()
	}, nil
}

// slice is how much of a rest is slept at once.
const slice = 50 * time.Millisecond

// rest sleeps for so long, without the time in which this process was not run: then the machine stood still, or had
// more to do than processors, and nobody else got on either.
func rest(ctx context.Context, d time.Duration) {
	for ; d > 0 && ctx.Err() == nil; d -= slice {
		enginekit.Pause(ctx, min(d, slice))
	}
}

// during ends after d. It has no deadline, or what dials with it might fail of that before it has ended, and for
// another reason, as it seems, than that.
func during(ctx context.Context, d time.Duration) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(ctx)
	timer := time.AfterFunc(d, cancel)
	return ctx, func() {
		timer.Stop()
		cancel()
	}
}

// Coordinator is the number of this process, which is no client.
const Coordinator = -1
