// interlock run, and what sem and elect share with it. run_flags.go reads the command line and run_checks.go refuses
// what contradicts itself. stage.go then prepares all that comes before the lock, lock.go takes it, job.go runs the
// command, and run_release.go ends it. fd.go is the way without a command.

package main

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

// runCommand describes run and the flags that sem and elect do not have. The exit codes are in its help, because
// scripts depend on them.
func (a *app) runCommand() *cobra.Command {
	o := runOptions{command: "run"}
	cmd := &cobra.Command{
		Use:     "run NAME [flags] -- CMD [ARG...]",
		Short:   "Run a command while holding a lock",
		Long:    runLong + "\n\n" + exitCodesText,
		Example: runExample,
		GroupID: "jobs",
		// The line of Use is complete; cobra would add a second [flags].
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeFirstName,
	}
	flags := cmd.Flags()
	flags.BoolVarP(&o.shared, "shared", "s", false,
		"hold the read lock of the read/write lock NAME, beside other readers")
	flags.BoolVarP(&o.exclusive, "exclusive", "x", false, "hold the write lock of the read/write lock NAME, alone")
	// 0 is a descriptor that a shell may have opened on a lock's file, so it cannot stand for "no descriptor".
	flags.IntVar(&o.fd, "fd", -1, "lock this descriptor of the calling shell, and run no command (files only)")
	flags.Lookup("fd").DefValue = "0" // then the help shows no default
	a.addJob(cmd, &o)
	return cmd
}

// runJob is the work of run and sem: it reads the arguments, and then takes the lock, for a job or for a descriptor.
//
// A flag is looked up by Changed wherever its absence means something else than its zero: without --wait the wait has
// no end, and with --wait 0 there is none.
func (a *app) runJob(cmd *cobra.Command, o *runOptions, args []string) error {
	unnamed := cmd.Flags().ArgsLenAtDash() == 0 // "run -- CMD": most likely the name was forgotten
	name, argv, help, err := splitRunArgs(cmd, args)
	switch {
	case err != nil:
		return err
	case help:
		return cmd.Help()
	}
	o.waitGiven, o.graceGiven = cmd.Flags().Changed("wait"), cmd.Flags().Changed("kill-grace")
	// With --fd nothing runs, so none of the checks for a job apply.
	if cmd.Flags().Changed("fd") {
		return a.lockDescriptor(cmd.Context(), o, name, argv, cmd.Flags().Changed)
	}
	if argv, err = o.resolve(name, argv); err != nil {
		return err
	}
	err = a.runUnderLock(cmd.Context(), o, name, argv)
	if code := judge(err).exit; unnamed && err != nil && code == exitNotFound {
		return exitWith(code, fmt.Errorf("%w (the name of the lock is %q: the name comes before the command)", err,
			name))
	}
	return err
}

// runUnderLock takes the lock, runs the command, and gives the lock back.
//
// prepare refuses what it can before the wait, which may take hours. The command starts last, so it never runs without
// the lock. After the grant every path goes through giveBack, also if the command could not be started.
func (a *app) runUnderLock(ctx context.Context, o *runOptions, name string, argv []string) error {
	s, err := a.prepare(ctx, o, name, argv[0])
	if err != nil {
		return err
	}
	defer s.close()
	lease, err := a.takeLock(ctx, s.e, o, name, s.signals)
	if err != nil {
		return s.refused(o, err)
	}
	// From here on the client is not closed: that would only go on trying a release that giveBack has given up.
	j := s.job(lease, driver.Key{Kind: o.kind(), Name: name}, argv)
	j.ignoreLoss = o.onLost == "ignore"
	// The file is then open in this process alone, so the lock ends with it even if the command runs on: what flock
	// --close does.
	if o.close {
		j.lends = nil
	}
	got := time.Now() // a little later than the grant, so the lock stays closed for a little longer
	end, err := j.run(a.stdin, a.stdout, a.stderr)
	// On an engine with leases the server keeps the lock closed by itself.
	if err == nil && !end.lost && s.e.driver.Traits().Lifetime != driver.Leases {
		a.sitOut(ctx, o, lease, s.signals, got.Add(o.minHold))
	}
	return a.giveBack(ctx, o, lease, a.releaseTime(lease.Deadline(), s.budget), end, err)
}

// conflict gives the error of an acquisition its exit code, which -E may have set. -E is flock's. In cron -E 0 makes a
// job that still runs no failure. Other errors keep their codes, because an engine out of reach must never look like a
// lock that is held.
func (o *runOptions) conflict(err error) error {
	if errors.Is(err, interlock.ErrHeld) {
		return exitWith(o.conflictExit, err)
	}
	return err
}
