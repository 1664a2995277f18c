// Package gocronlock has interlock's locks for the scheduler github.com/go-co-op/gocron: a [Locker], with which each
// run of a job happens on one of the schedulers that have it, and an [Elector], with which one scheduler runs all
// jobs as long as it lives.
//
//	locker := gocronlock.NewLocker(locks, &interlock.LockOptions{MinHold: time.Minute})
//	s, err := gocron.NewScheduler(gocron.WithDistributedLocker(locker))
//
// # Which one
//
// With a Locker the work spreads over the schedulers, whoever is first. A job that takes less time than the clocks of
// the hosts differ by would run again when the late one comes, since the lock is free by then: give the locks a MinHold
// longer than that (interlock.LockOptions), and shorter than the time between two runs. With an Elector the leader runs
// each job by its own clock.
//
// # What they do not do
//
// gocron has no way to hear that a lock was lost while a job runs. A job that must not go on then takes a lock itself,
// with interlock.Client.Do, whose context ends with the lock.
package gocronlock

import (
	"context"

	"github.com/go-co-op/gocron/v2"
	"github.com/interlock-go/interlock"
)

// prefix begins the names of the locks, so that a job's name is no other lock's.
const prefix = "gocron:"

// Locker is a gocron.Locker. It is safe for concurrent use, and may be shared by schedulers of one process.
type Locker struct {
	c    *interlock.Client
	opts *interlock.LockOptions
}

var (
	_ gocron.Locker  = (*Locker)(nil)
	_ gocron.Lock    = (*interlock.Lease)(nil)
	_ gocron.Elector = (*Elector)(nil)
)

// NewLocker returns a Locker whose locks are named "gocron:" and the name of the job: give jobs names of their own
// (gocron.WithName), since the default is the function's. opts are those of each lock, nil for the client's. The client
// is the caller's to close, after the scheduler's shutdown; a nil one panics.
func NewLocker(c *interlock.Client, opts *interlock.LockOptions) *Locker {
	if c == nil {
		panic("gocronlock: NewLocker needs a client")
	}
	return &Locker{c: c, opts: opts}
}

// Lock takes the job's lock if it is free: gocron skips the run after an error, and tells the job's AfterLockError. The
// error of a job that runs elsewhere matches interlock.ErrHeld; another one means that the lock could not be asked for,
// or that the name or the options are wrong. The lock is held, and renewed, until gocron unlocks it after the run, also
// if the run's context ends before. It costs a round trip, and the release another.
func (l *Locker) Lock(ctx context.Context, key string) (gocron.Lock, error) {
	lease, err := l.c.Mutex(prefix+key, l.opts).TryLock(ctx)
	if err != nil {
		return nil, err // not the nil *Lease as a gocron.Lock that is not nil
	}
	return lease, nil
}
