// interlock sem: run under permits of a semaphore. Beside its flags it has what tells the kinds of locks apart for run,
// sem and elect; run.go does the rest.

package main

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

const semLong = `Run a command while holding permits of the semaphore NAME, and exit with the command's exit
code.

A semaphore never grants more than --limit permits at a time, on all machines together. Each
command takes --permits of them. Permits are granted in the order of the requests: a request for
many is not overtaken by one for few. The permits of a machine that vanishes come back when its
lease ends. Every user of a semaphore must give the same limit; a command with another limit is
refused while the semaphore is in use.

Everything else is as in "interlock run": waiting, signals, what happens when the permits cannot
be kept, exit codes. Semaphores have names of their own: sem NAME and run NAME are different
locks. Files (on Linux), Redis and etcd have semaphores. A semaphore in files counts on one
machine only, and permits come back as soon as their command has ended.`

// The last example bounds what xargs -P cannot: commands on several machines.
const semExample = `  interlock sem transcode --limit 4 -- ffmpeg -i in.mov out.mp4
  interlock sem memory --limit 64 --permits 16 -- ./big-job      # gigabytes
  find . -name '*.raw' | xargs -P 0 -I{} interlock sem convert --limit 8 -- ./convert {}`

// semCommand describes sem and the flags that run does not have. --limit has no default: every user of the semaphore
// must give the same, and one that was forgotten would be refused only while others are inside.
func (a *app) semCommand() *cobra.Command {
	o := runOptions{command: "sem"}
	cmd := &cobra.Command{
		Use:                   "sem NAME --limit N [--permits K] [flags] -- CMD [ARG...]",
		Short:                 "Run a command while holding permits of a semaphore",
		Long:                  semLong + "\n\n" + exitCodesText,
		Example:               semExample,
		GroupID:               "jobs",
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeFirstName,
	}
	cmd.Flags().IntVar(&o.limit, "limit", 0, "number of permits of the semaphore; required")
	cmd.Flags().IntVar(&o.permits, "permits", 1, "number of permits that the command takes")
	a.addJob(cmd, &o)
	return cmd
}

// checkPermits checks the flags that only sem has. A wait for more permits than there are would have no end.
func (o *runOptions) checkPermits() error {
	switch {
	case o.command != "sem":
		return nil
	case o.limit == 0:
		return usage("sem wants --limit: how many permits there are")
	case o.limit < 0:
		return usage("--limit %d must be at least 1", o.limit)
	case o.permits < 1:
		return usage("--permits %d must be at least 1", o.permits)
	case o.permits > o.limit:
		return usage("--permits %d is more than there are: --limit %d", o.permits, o.limit)
	}
	return nil
}

// kind is the kind of the lock that the flags mean. Kinds have names of their own: the mutex x, the read/write lock x
// and the semaphore x are three locks.
func (o *runOptions) kind() driver.Kind {
	switch o.command {
	case "sem":
		return driver.KindSemaphore
	case "elect":
		return driver.KindElection
	}
	if o.shared || o.exclusive {
		return driver.KindRWMutex
	}
	return driver.KindMutex
}

// has refuses locks of a kind that the engine lacks, and says which engines have them. The check comes before the wait,
// and says which URL helps.
func (e *engine) has(kind driver.Kind, name string) error {
	traits := e.driver.Traits()
	reason, lacks := traits.LackingKind(kind)
	if !lacks {
		return nil
	}
	err := fmt.Errorf("%s %q: %w (%s: %s)", kind, name, interlock.ErrUnsupported, traits.Engine, reason)
	// Users of the default engine meet this on systems other than Linux, where files have no semaphores
	// (docs/rationale.md, Files).
	if kind == driver.KindSemaphore {
		err = fmt.Errorf("%w; Redis, etcd and, on Linux, files have semaphores: --url redis://localhost:6379 or --url "+
			"etcd://localhost:2379, or INTERLOCK_URL", err)
	}
	return err
}

// locker is a lock under which a job can run. The library's locks have no method in common: a semaphore is asked for a
// number of permits, a reader asks by RLock.
type locker interface {
	Lock(ctx context.Context) (*interlock.Lease, error)
	TryLock(ctx context.Context) (*interlock.Lease, error)
}

// locker returns the lock that the flags mean, on c. It asks the engine nothing. An election is missing: its grant
// needs a value, so lead asks for it.
func (o *runOptions) locker(c *interlock.Client, name string) locker {
	opts := &interlock.LockOptions{Label: o.label, MinHold: o.minHold, LockDelay: o.lockDelay}
	switch {
	case o.command == "sem":
		return permits{c.Semaphore(name, o.limit, opts), o.permits}
	case o.shared:
		return reads{c.RWMutex(name, opts)}
	case o.exclusive:
		return c.RWMutex(name, opts)
	}
	return c.Mutex(name, opts)
}

// checkModes checks the flags of a read/write lock.
func (o *runOptions) checkModes() error {
	if o.shared && o.exclusive {
		return usage("--shared and --exclusive contradict each other")
	}
	return nil
}

// reads is the reading side of a read/write lock, as a locker.
type reads struct{ of *interlock.RWMutex }

// Lock waits until the lock can be read.
func (r reads) Lock(ctx context.Context) (*interlock.Lease, error) { return r.of.RLock(ctx) }

// TryLock reads if nobody writes or waits to write.
func (r reads) TryLock(ctx context.Context) (*interlock.Lease, error) { return r.of.TryRLock(ctx) }

// permits are n permits of a semaphore, as a locker. --permits fixes n for the whole run.
type permits struct {
	of *interlock.Semaphore
	n  int
}

// Lock takes the permits.
func (p permits) Lock(ctx context.Context) (*interlock.Lease, error) { return p.of.Acquire(ctx, p.n) }

// TryLock takes the permits if they are free.
func (p permits) TryLock(ctx context.Context) (*interlock.Lease, error) {
	return p.of.TryAcquire(ctx, p.n)
}
