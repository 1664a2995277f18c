// The flags of run, sem and elect, and how a command line is read. run_checks.go looks for contradictions among them.
// elect has some of the same flags with words of its own, so it declares them itself (elect.go).

package main

import (
	"time"

	"github.com/spf13/cobra"
)

// runOptions are the flags of run, sem and elect.
// The fields belong to the invocation: the tree of commands is built anew for each, so no value of an earlier one is
// left here.
type runOptions struct {
	command                    string // run, sem or elect
	limit, permits             int    // of sem
	wait, lease, grace         time.Duration
	minHold, lockDelay         time.Duration
	waitGiven, graceGiven      bool // the flag was given, so 0 is no default
	noWait, verbose, strict    bool
	shared, exclusive, close   bool // of run, except close
	fd                         int  // of run: a descriptor of the caller's to lock, or -1
	label, owner, shell        string
	onLost                     string // kill or ignore
	conflictExit, lostExitCode int
}

// addJob gives cmd the flags of a command that runs a job, and its work.
//
// Flags may stand before and after the name, but not behind the command: "interlock run x -- grep -n y" must not take
// -n for its own.
func (a *app) addJob(cmd *cobra.Command, o *runOptions) {
	cmd.Flags().SetInterspersed(false) // what stands after the command belongs to the command
	o.addWaitFlags(cmd)
	o.addLeaseFlags(cmd)
	o.addCommandFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.runJob(cmd, o, args) }
}

// addWaitFlags adds the flags that say who asks, and how long they wait. -w, -n and -E mean what they mean to flock(1),
// except that a conflict exits with 75 where flock says 1, which a job may say as well (docs/flock.md).
func (o *runOptions) addWaitFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.VarP(durationOf(&o.wait, 0), "wait", "w",
		"how long to wait for the lock; 0 means not at all (default: for ever)")
	flags.BoolVarP(&o.noWait, "no-wait", "n", false, "do not wait: the same as --wait 0")
	flags.IntVarP(&o.conflictExit, "conflict-exit-code", "E", exitHeld,
		"exit code when another owner holds the lock")
	flags.StringVar(&o.label, "label", "", "text shown to operators beside the holder")
	flags.StringVar(&o.owner, "owner", "",
		"name of the owner; the same name re-enters the lock, from another process too")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "print who holds the lock and how long the wait took")
}

// addLeaseFlags adds the flags that say how long the lock stays with its holder, and what a loss means. --lease bounds
// how long other owners wait for a machine that has vanished. The command may run longer, because the lease is renewed.
func (o *runOptions) addLeaseFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.Var(durationOf(&o.lease, defaultLease), "lease", "how long other owners wait if this machine vanishes")
	flags.Var(durationOf(&o.minHold, 0), "min-hold",
		"minimum time from the grant until another owner can get the lock (for jobs on many hosts)")
	flags.Var(durationOf(&o.lockDelay, 0), "lock-delay",
		"how long the lock stays unavailable after it was lost (Redis only)")
	flags.StringVar(&o.onLost, "on-lost", "kill", "what happens to the command when the lock is lost: kill or ignore")
	flags.IntVar(&o.lostExitCode, "lost-exit-code", exitLost, "exit code when the lock was lost while the command ran")
	flags.BoolVar(&o.strict, "strict-release", false, "exit with 125 if the lock could not be released")
	completeFlag(cmd, "on-lost", "kill", "ignore")
}

// addCommandFlags adds the flags of the command that runs. --kill-grace has no default here, since the right one
// follows from the lease; resolve fills it in.
func (o *runOptions) addCommandFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.StringVarP(&o.shell, "command", "c", "", "run this with /bin/sh -c instead of CMD")
	flags.Var(durationOf(&o.grace, 0), "kill-grace",
		"time between TERM and KILL (default: 5s, or a sixth of the lease if that is less; on files none)")
	flags.BoolVar(&o.close, "close", false, "do not let the command inherit the lock (files only)")
}

// splitRunArgs finds the name and the command, or that help is wanted. Flags may stand before and after the name.
// Parsing stops at the first argument, which is the name, so what follows it is parsed a second time.
//
// Cobra has looked for --help in front of the name only, so it is looked for again, for "interlock run x --help".
func splitRunArgs(cmd *cobra.Command, args []string) (name string, argv []string, help bool, err error) {
	if len(args) == 0 {
		return "", nil, false, usage("%s wants the name of a lock and a command", cmd.Name())
	}
	if err := cmd.Flags().Parse(args[1:]); err != nil {
		return "", nil, false, flagError(cmd, err)
	}
	help, err = cmd.Flags().GetBool("help")
	return args[0], cmd.Flags().Args(), help, err
}
