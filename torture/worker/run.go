package worker

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"runtime"
	"strings"
	"sync"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/interlock-go/interlock/internal/childproc"
	"github.com/interlock-go/interlock/torture/history"
)

// Ready is what a process says when it has begun to record.
type Ready struct{ Ready bool }

// Run is the process: it works until its parent says no more.
func Run(ctx context.Context, parent *childproc.Conn) error {
	j := new(Job)
	if err := parent.Receive(j); err != nil {
		return fmt.Errorf("a worker is started by a run, which tells it what to do: %w", err)
	}
	log, err := history.Create(j.Dir, fmt.Sprintf("proc-%02d-%02d", j.Proc, j.Life))
	if err != nil {
		return err
	}
	defer func() { _ = log.Close() }()
	before := residue()
	log.Write(history.Event{Proc: j.Proc, Op: history.Start, Goroutines: before.goroutines, Files: before.files})
	if err := parent.Send(Ready{true}); err != nil {
		return err
	}

	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // ends with the input
		for parent.Receive(new(json.RawMessage)) == nil { // nothing is said but by its end
		}
		cancel()
	}()
	watched := make(chan struct{})
	go func() { // ends with the input
		defer close(watched)
		WatchLag(ctx, j.Proc, log)
	}()
	err = work(ctx, j, log)
	cancel()
	<-watched
	if err != nil {
		return err
	}
	after := settled(before)
	log.Write(history.Event{
		Proc: j.Proc, Op: history.End, Goroutines: after.goroutines - before.goroutines,
		Files:   after.files - before.files,
		Sockets: after.sockets - before.sockets,
	})
	return nil
}

func work(ctx context.Context, j *Job, log *history.Writer) error {
	clients := make([]*interlock.Client, max(1, j.Clients))
	for i := range clients {
		if clients[i] = openPatiently(ctx, j, i); clients[i] == nil {
			return nil
		}
	}
	var all sync.WaitGroup
	for g := range j.Goroutines {
		all.Go(func() { newWorker(j, log, clients[g%len(clients)], g).work(ctx) })
	}
	all.Wait()
	for _, locks := range clients {
		_ = locks.Close() // what it could not confirm ends with its lease, and the checks see it if not
	}
	return nil
}

const (
	pulse = 10 * time.Millisecond // between two looks at the clock
	late  = 5 * time.Millisecond  // from when on it is recorded
)

// WatchLag records, until ctx ends, when this process was not run although it was to: what it does late then
// is the machine's fault. (Or that of a library which keeps all processors of its program busy: that would
// not be told apart here.)
func WatchLag(ctx context.Context, proc int, log *history.Writer) {
	for ctx.Err() == nil {
		due := time.Now().Add(pulse)
		enginekit.Pause(ctx, pulse)
		if lag := time.Since(due); lag > late {
			log.Write(history.Event{Proc: proc, Op: history.Lag, Took: lag})
		}
	}
}

// openPatiently opens the engine, also while a fault lasts. It returns nil when ctx has ended.
func openPatiently(ctx context.Context, j *Job, client int) *interlock.Client {
	opts := &interlock.Options{Lease: j.Lease, ClientName: j.nameOf(client), CloseTimeout: 2 * time.Second}
	if j.Proc%2 == 0 {
		opts.Retain = j.Retain // what it does beside bursts is retained too
	}
	for {
		attempt, cancel := context.WithTimeout(ctx, 2*time.Second)
		locks, err := interlock.Open(attempt, j.URL, opts)
		cancel()
		if err == nil {
			return locks
		}
		fmt.Fprintf(os.Stderr, "proc %d: open: %v\n", j.Proc, err)
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(100 * time.Millisecond):
		}
	}
}

// had is what a process has of what can leak.
type had struct{ goroutines, files, sockets int }

func residue() had {
	const dir = "/proc/self/fd/"
	files, err := os.ReadDir(dir)
	if err != nil {
		files = nil
	}
	now := had{goroutines: runtime.NumGoroutine(), files: len(files)}
	for _, f := range files {
		if to, err := os.Readlink(dir + f.Name()); err == nil && strings.HasPrefix(to, "socket:") {
			now.sockets++
		}
	}
	return now
}

// settled is residue once what is ending has ended, or has had some seconds for that.
func settled(before had) had {
	var now had
	for range 400 {
		now = residue()
		// one waits for the input
		if now.goroutines <= before.goroutines+1 && now.files <= before.files && now.sockets <= before.sockets {
			break
		}
		time.Sleep(10 * time.Millisecond)
	}
	now.goroutines--
	return now
}
