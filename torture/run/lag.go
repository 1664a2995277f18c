package run

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/target"
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

const (
	// from when on it is recorded that the disk took so long: of the shortest lease it takes 500 ms to matter.
	slowDisk = 100 * time.Millisecond
	perDisk  = 200 * time.Millisecond // between two looks: each is work for that disk too
)

// watchDisk records, until end is called, when the disk on which the servers have their data took long to keep a byte:
// a server that answers only when its disk has kept something cannot answer sooner. It does nothing if the servers do
// not wait for that, or have a disk that must be full.
func (r *run) watchDisk(ctx context.Context) (end func() error, err error) {
	if !r.Target.Syncs || slices.Contains(r.Faults, target.DiskFull) {
		return func() error { return nil }, nil
	}
	var dir string
	if err := r.stage.Play(func(t testing.TB) { dir = t.TempDir() }); err != nil {
		return nil, err
	}
	file, err := os.Create(filepath.Join(dir, "disk"))
	if err != nil {
		return nil, err
	}
	log, err := history.Create(r.Dir, "disk")
	if err != nil {
		return nil, errors.Join(err, file.Close())
	}
	ctx, cancel := context.WithCancel(ctx)
	done := make(chan error)
	go func() { done <- tryDisk(ctx, file, log) }() // ends with end
	return func() error {
		cancel()
		return errors.Join(<-done, log.Close(), file.Close())
	}, nil
}

func tryDisk(ctx context.Context, file *os.File, log *history.Writer) error {
	for ; ctx.Err() == nil; enginekit.Pause(ctx, perDisk) {
		begun := time.Now()
		if _, err := file.WriteAt([]byte{1}, 0); err != nil {
			return err
		}
		if err := file.Sync(); err != nil {
			return err
		}
		if took := time.Since(begun); took > slowDisk {
			log.Write(history.Event{Proc: Coordinator, Op: history.Disk, Took: took})
		}
	}
	return nil
}
