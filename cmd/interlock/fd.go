// interlock run --fd: takes a lock on a descriptor that a shell has open, so that the shell holds it and no process of
// ours has to stay. run.go comes here in place of a job. The lock is on the same file as that of flock(1), and each
// keeps the other out. Flags of flock(1) that run does not have get help: docs/flock.md is the whole table, and those
// with the same meaning have the same letter.

package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/filelock"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// descriptorLocker is what the file engine can do beyond other drivers: there a lock can belong to an open file of
// another process.
//
// Path is needed to find out whether the descriptor is open on the lock's own file, and to tell the user which file
// that is.
type descriptorLocker interface {
	Path(key driver.Key) string
	AcquireOn(ctx context.Context, r *driver.Request, file *os.File) (driver.Grant, error)
}

// onDescriptor is a driver whose locks are taken on one open file. With it, ask of handle.go works for descriptors
// unchanged.
type onDescriptor struct {
	driver.Driver
	locker descriptorLocker
	file   *os.File
}

// Acquire takes the lock on the open file.
func (d *onDescriptor) Acquire(ctx context.Context, r *driver.Request) (driver.Grant, error) {
	return d.locker.AcquireOn(ctx, r, d.file)
}

// notWithDescriptor are the flags of run that mean nothing beside --fd: they are about the command, or a lease. They
// are refused and not ignored: somebody who gives --lease here expects the lock to end.
var notWithDescriptor = []string{
	"close", "command", "kill-grace", "lease", "lock-delay", "lost-exit-code", "min-hold", "on-lost", "owner",
	"strict-release",
}

// lockDescriptor takes the lock on a descriptor that the process which started us has open. When this process ends,
// that one still has the open file and with it the lock.
//
// The engine is closed at the end, and the hold stays: the driver does not know holds on files that are not its own.
func (a *app) lockDescriptor(
	ctx context.Context, o *runOptions, name string, argv []string, given func(flag string) bool,
) error {
	if err := o.checkDescriptor(name, argv, given); err != nil {
		return err
	}
	signals := catchSignals()
	defer signals.stop()
	e, err := a.open(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }() // leaves the lock alone: it is not the client's
	if err := e.has(o.kind(), name); err != nil {
		return err
	}
	d, err := e.onDescriptor(o.fd, driver.Key{Kind: o.kind(), Name: name})
	if err != nil {
		return err
	}
	ctx, done := signals.endWait(ctx)
	defer done()
	began := time.Now()
	grant, err := a.waitOnDescriptor(ctx, d, o, name)
	var stopped *signalError
	switch {
	case err == nil && o.verbose:
		a.say("got %q on descriptor %d after %s, token %d", name, o.fd, short(time.Since(began)), grant.Token)
	case err != nil && errors.As(context.Cause(ctx), &stopped):
		return stopped
	// Another command may have locked it while this one waited. The engine is well, so it must not look like an outage.
	case errors.Is(err, filelock.ErrHasLocks):
		return usage("--fd: descriptor %d has a lock already, which lasts until the shell closes it: exec %[1]d>&-",
			o.fd)
	}
	return o.conflict(err)
}

// checkDescriptor checks the flags against each other.
//
// The other flags obey the rules of run. resolve wants a command, so it gets a placeholder.
func (o *runOptions) checkDescriptor(name string, argv []string, given func(flag string) bool) error {
	if at := slices.IndexFunc(notWithDescriptor, given); at >= 0 {
		return usage("--%s means nothing beside --fd, which runs no command", notWithDescriptor[at])
	}
	switch {
	case o.fd < 0:
		return usage("--fd %d is no descriptor", o.fd)
	case len(argv) > 0:
		return usage("--fd takes no command: the shell holds the lock until it closes the descriptor")
	}
	if _, err := o.resolve(name, []string{"none"}); err != nil {
		return err
	}
	return nil
}

// onDescriptor returns the driver that takes the lock on our copy of that descriptor. A copy shares the open file, to
// which the kernel ties the lock. The file must be the lock's own: otherwise the lock would keep nobody out.
//
// The kernel has made the copy as this process started. A lock of flock(2) lasts until the last copy is closed, so the
// end of this process leaves it to the shell.
func (e *engine) onDescriptor(fd int, key driver.Key) (*onDescriptor, error) {
	locker, ok := e.driver.(descriptorLocker)
	if !ok {
		// The advice differs by engine: a lease can be renewed by a script, a session ends with its connection.
		lifetime, instead := e.driver.Traits().Lifetime, "\"interlock run\""
		if lifetime == driver.Leases {
			instead = "\"interlock acquire\", whose handle a script renews and releases, or " + instead
		}
		return nil, fmt.Errorf("--fd: %w: only a lock in files belongs to a descriptor, on %s a hold ends with its "+
			"%s; use %s", interlock.ErrUnsupported, e.url, lifetime, instead)
	}
	path := locker.Path(key)
	if why := unfit(fd, path); why != "" {
		return nil, usage("--fd: descriptor %d %s; the shell opens it first: exec %[1]d<>%[3]s", fd, why, quote(path))
	}
	return &onDescriptor{e.driver, locker, os.NewFile(uintptr(fd), path)}, nil
}

// unfit says why a lock at path cannot be taken on that descriptor, or nothing. Device and inode are compared and not
// paths: the shell may have opened the file through a link, or the file may have been replaced since.
func unfit(fd int, path string) string {
	flags, err := unix.FcntlInt(uintptr(fd), unix.F_GETFL, 0)
	if err != nil {
		return "is not open"
	}
	var open, there unix.Stat_t
	err = errors.Join(unix.Fstat(fd, &open), unix.Stat(path, &there))
	switch {
	case err != nil, open.Dev != there.Dev, open.Ino != there.Ino:
		return "is not open on the lock's file"
	// filelock wants both; see its AcquireOn.
	case flags&unix.O_ACCMODE != unix.O_RDWR:
		return "is not open for reading and writing"
	}
	return ""
}

// waitOnDescriptor tries once, so that it can say who is in the way, and then waits. The place in the queue belongs to
// an open file of our own. With the shell's it would outlive an interlock that was killed, and the shell would stand in
// everybody's way.
func (a *app) waitOnDescriptor(
	ctx context.Context, d *onDescriptor, o *runOptions, name string,
) (driver.Grant, error) {
	// The grant belongs to the descriptor and has no lease of ours, so only the wait and the label count.
	opts := &acquireOptions{wait: o.wait, waitGiven: o.waitGiven, label: o.label}
	request := func(try bool) *driver.Request {
		r := opts.request(name, try)
		r.Kind = o.kind()
		if o.shared {
			// --exclusive needs nothing: that is the mode of a request unless it says otherwise.
			r.Mode = driver.Shared
		}
		return r
	}
	grant, err := a.ask(ctx, d, opts, request(true), nil)
	var held *interlock.HeldError
	if !errors.As(err, &held) || o.waitGiven && o.wait == 0 {
		return grant, err
	}
	a.tellWaiting(o.verbose, held)
	return a.ask(ctx, d, opts, request(false), held)
}

// flockWords are flags of flock(1) that run does not have, as the text of pflag's error has them, and what to do
// instead.
var flockWords = map[string]string{
	"'u' in ":   closesIt,
	"--unlock":  closesIt,
	"'F' in ":   staysBeside,
	"--no-fork": staysBeside,
	"'e' in ":   "a lock is exclusive by itself; beside readers it is -x",
}

const (
	// Both are said of two flags each: the short and the long form.
	closesIt    = "a lock on a descriptor ends when the shell closes it: exec 9>&-"
	staysBeside = "run stays beside its command, to forward signals and to give the lock back"
)

// flagError is the error of an unknown flag, with what to do instead if it is one of flock(1). The text of pflag's
// error is searched, which has a letter and a name as flockWords have them. Should pflag change its words, only the
// hint is gone; testdata/script/flock.txtar would notice.
func flagError(cmd *cobra.Command, err error) error {
	if cmd.Name() == "run" {
		for word, instead := range flockWords {
			if strings.Contains(err.Error(), "flag: "+word) {
				return usage("%v: %s", err, instead)
			}
		}
	}
	return usage("%v", err)
}
