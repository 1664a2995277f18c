// interlock run, and what sem and elect share with it.

package main

import (
	"context"
	"errors"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

// runCommand describes run and the flags that sem and elect do not have.
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
	flags.IntVar(&o.fd, "fd", -1, "lock this descriptor of the calling shell, and run no command (files only)")
	flags.Lookup("fd").DefValue = "0" // then the help shows no default
	a.addJob(cmd, &o)
	return cmd
}

// runJob is the work of run and sem: it reads the arguments, and then takes the lock, for a job or for a descriptor.
func (a *app) runJob(cmd *cobra.Command, o *runOptions, args []string) error {
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
	return a.runUnderLock(cmd.Context(), o, name, argv)
}

// runUnderLock takes the lock, runs the command, and gives the lock back.
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

// conflict gives the error of an acquisition its exit code, which -E may have set.
func (o *runOptions) conflict(err error) error {
	if errors.Is(err, interlock.ErrHeld) {
		return exitWith(o.conflictExit, err)
	}
	return err
}
