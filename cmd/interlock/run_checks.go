// The rules for the flags of run, sem and elect. They are checked before the engine is asked, so a mistake shows at
// once; each error is wrong use (exit code 64).

package main

import "cmp"

// resolve checks the flags against each other, fills in what depends on others, and returns the command to run. It asks
// the engine nothing.
//
// cmp.Or keeps the first error alone, because one mistake often causes the next.
func (o *runOptions) resolve(name string, argv []string) ([]string, error) {
	if err := o.checkNames(name); err != nil {
		return nil, err
	}
	// /bin/sh and not $SHELL, as flock has it: a crontab should not depend on a user's login shell.
	if o.shell != "" {
		if len(argv) > 0 {
			return nil, usage("give -c or a command, not both")
		}
		argv = []string{"/bin/sh", "-c", o.shell}
	}
	err := cmp.Or(o.checkModes(), o.checkPermits(), o.checkCommand(name, argv), o.checkTimes(), o.checkOutcomes())
	if err != nil {
		return nil, err
	}
	if o.noWait {
		o.wait, o.waitGiven = 0, true
	}
	// It depends on the lease, so it is no default of the flag.
	if !o.graceGiven {
		o.grace = defaultGrace(o.lease)
	}
	return argv, nil
}

// checkNames checks the names of the lock and its holder, and the lease. The same rules hold for every engine, so a
// name that works with files works with Redis too.
func (o *runOptions) checkNames(name string) error {
	if err := checkName("lock name", name); err != nil {
		return err
	}
	if o.owner != "" {
		if err := checkName("owner", o.owner); err != nil {
			return err
		}
	}
	return cmp.Or(checkLeaseFlag(o.lease), checkLabel(o.label))
}

// checkCommand checks that there is something to run.
func (o *runOptions) checkCommand(name string, argv []string) error {
	switch {
	case len(argv) == 0:
		return usage("%s wants a command after the name of the lock: interlock %[1]s %s -- CMD", o.command, name)
	// As from a script's "$CMD" that is not set. The search along PATH would say 127, as for a command that is not
	// installed.
	case argv[0] == "":
		return usage("the command is empty")
	}
	return nil
}

// checkTimes checks the flags that are durations. A negative one is a mistake in a script's arithmetic. To take it as
// zero would turn a short wait into none.
func (o *runOptions) checkTimes() error {
	switch {
	case o.wait < 0:
		return usage("--wait %v is negative", o.wait)
	// --no-wait with --wait 0 says the same twice, so that is accepted.
	case o.noWait && o.wait > 0:
		return usage("--no-wait and --wait %v contradict each other", o.wait)
	case o.grace < 0:
		return usage("--kill-grace %v is negative", o.grace)
	case o.minHold < 0:
		return usage("--min-hold %v is negative", o.minHold)
	case o.lockDelay < 0:
		return usage("--lock-delay %v is negative", o.lockDelay)
	}
	return nil
}

// checkOutcomes checks the flags that say what follows from a conflict and from a loss. The system keeps eight bits of
// an exit code. A larger one would come out as another: 256 as success.
func (o *runOptions) checkOutcomes() error {
	switch {
	case o.onLost != "kill" && o.onLost != "ignore":
		return usage("--on-lost must be kill or ignore, not %q", o.onLost)
	case o.conflictExit < 0 || o.conflictExit > 255:
		return usage("--conflict-exit-code %d must be between 0 and 255", o.conflictExit)
	case o.lostExitCode < 0 || o.lostExitCode > 255:
		return usage("--lost-exit-code %d must be between 0 and 255", o.lostExitCode)
	}
	return nil
}
