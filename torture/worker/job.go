// Package worker is one client process of a run: goroutines that take locks of interlock through its public API, count
// in the register under them, and record all of that. It is meant to be killed, stopped and cut off at any instant.
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

// Job is what a process is told first, in JSON. When its input ends, it ends in order.
type Job struct {
	URL      string
	Register string // address
	Dir      string // of the histories
	Proc     int    // number of the process
	Life     int    // how often it was started before; the history's file is named by both
	Seed     uint64

	Goroutines int
	Clients    int // among which the goroutines are, in turn; 0 is one
	Names      []string
	Lease      time.Duration
	Hold       time.Duration // the mean; each hold lasts up to twice this, at random
	Patience   time.Duration // how long a Lock may wait
	Cancel     float64       // share of the Locks whose context ends at random before that
	MaxCycles  int           // for each goroutine; 0 is no bound
	Mixed      bool          // some of the work is more than to count under one lock
	Long       time.Duration // if not 0: each goroutine holds one lock of its own for so long, and ends
	// if not 0: most of the work is bursts of a mutex that is retained for so long after each hold
	Retain time.Duration
	Named  bool            // some of the owners that take a lock several times have a name
	Ends   bool            // the run is told of what ends something, before that is asked for
	Held   bool            // all of the work is holds of a mutex that last for Hold each
	Shares []history.Share // how locks may be shared on this engine
}

// Patience is how long a Lock may wait, unless its context ends at random, for locks of that lease on an engine that
// may need so long to heal: longer if everybody's holds, one after the other, take longer than some leases.
func Patience(lease, heal, oneByOne time.Duration) time.Duration {
	return heal + 2*lease + max(2*lease, oneByOne)
}

// FixedLease is how long a lease lasts that is meant to be overrun, where the others last for lease.
func FixedLease(lease time.Duration) time.Duration { return lease / 4 }

// ClientName is what operators see of the process. It comes back with the same when it was killed.
func (j *Job) ClientName() string { return fmt.Sprintf("proc-%d", j.Proc) }

// nameOf is that of one of the process's clients.
func (j *Job) nameOf(client int) string {
	if j.Clients > 1 {
		return fmt.Sprintf("%s.%d", j.ClientName(), client)
	}
	return j.ClientName()
}

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
