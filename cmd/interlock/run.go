// interlock run, and what sem and elect share with it: the command line, its contradictions (wrong use, exit code 64,
// before the engine is asked), the stage, which is all that comes before the lock, and the end of a run, after the job
// and before the exit code. lock.go takes the lock, job.go runs the command. fd.go is the way without a command.

package main

import (
	"cmp"
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

// It is wrapped by hand at 96 columns. help.go makes paragraphs of it, and the golden file of the help shows each
// change. The lines above the flags say what no flag can: what happens to the command, and when.
const runLong = `Run a command while holding the lock NAME, and exit with the command's exit code.

run waits for the lock for at most --wait, or for ever without it. A duration is written as
500ms or 1m30s; a plain number means seconds.

The command uses the stdin, stdout and stderr of interlock directly, and runs in its own process
group. interlock forwards the signals that it gets (INT, TERM, HUP, QUIT, USR1, USR2, WINCH,
TSTP, CONT) to the whole group. After INT or TERM the group has --kill-grace to end. Then, or at
a second INT or TERM, it is killed. A lock in files cannot expire, so on files the command has
no time limit unless --kill-grace is given. What it leaves in its group is killed after 5 s.

interlock releases the lock when the command has ended. First it kills what the command left in
its process group; a daemon that should live on must start its own session (setsid).

With --min-hold a command that ends early keeps the lock unavailable for the rest of that time.
On Redis the server does that, and run ends at once. On other engines a lock ends with its
process, so run stays until the time is over, or until INT or TERM.

If the lock cannot be kept, the group gets TERM early enough to have --kill-grace. It is killed
before another owner can get the lock, and the exit code is 79. This needs 2 x renewal +
kill-grace + drift + margin <= lease, or run refuses to start. A lock in files cannot be lost,
so none of this applies there.

If only interlock itself is killed (kill -9, no memory), a command on files goes on, and the lock
stays held until the command and all that inherited the lock have ended. On other engines, and
with --close, the command's process group is killed at once, before another owner can get in.
If interlock is only stopped (kill -STOP), the group is killed before the lock runs out (Linux).
Nobody is left to do so if interlock and the process interlock-keeper are killed together, and
nothing reaches a process that has left the group (setsid).

With --shared the command holds the read lock of the read/write lock NAME, beside other readers;
with --exclusive it holds the write lock, alone. A waiting writer keeps new readers out. Without
either flag the lock is a mutex. It is independent of the read/write lock of the same name, so a
command that must keep readers out needs --exclusive.

With --fd there is no command. run takes the lock on a descriptor that the calling shell has
open on the lock's file, and ends. The shell holds the lock until it closes the descriptor
(exec 9>&-) or ends, together with all that inherited it.`

// Each line meets a lock that is held in another way: wait, skip, wait for a while, share it, let the shell hold it.
// testdata/script tests each.
const runExample = `  interlock run nightly -- ./backup.sh --full
  interlock run nightly --no-wait -E 0 -- ./backup.sh     # in cron: skip quietly if it still runs
  interlock run deploy --wait 5m -c 'make build && make push'
  interlock run data --shared -- ./report.sh              # many of these, or one "run data --exclusive"
  exec 9<>~/.local/state/interlock/locks/nightly.mutex && interlock run nightly --fd 9   # the shell itself holds it`

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

// stage is what a command that runs a job has before it asks for the lock.
type stage struct {
	*app
	path    string // of the job's program
	signals *signals
	e       *engine
	budget  budget
}

// prepare finds the job's program, begins to catch signals, and opens the engine. After an error everything is closed
// again; otherwise the caller closes the stage.
//
// Signals are caught from here on, so that none of them can end this process between the grant and the job, when nobody
// would release the lock. One that comes while the engine is opened stays in the channel, and ends the wait for the
// lock as it begins.
func (a *app) prepare(ctx context.Context, o *runOptions, name, program string) (*stage, error) {
	path, err := lookCommand(program) // before any waiting, so that a typing error shows at once
	if err != nil {
		return nil, err
	}
	s := &stage{app: a, path: path, signals: catchSignals()}
	// What an engine finds wrong with its server is the same at each run, and cron would mail it each time.
	a.tellsChecks = o.verbose
	if s.e, err = a.open(ctx, &interlock.Options{Lease: o.lease}); err != nil {
		s.close()
		return nil, err
	}
	// Asked before the lock, because the refusal names engines that have it.
	if err = s.e.has(o.kind(), name); err != nil {
		s.close()
		return nil, err
	}
	// The engine decides how long a hold lasts, so the budget can be checked only now.
	if s.budget, err = s.e.budget(o); err != nil {
		s.close()
		return nil, err
	}
	// Each command would have a memory of its own, and the lock would exclude nobody.
	if s.e.url.Scheme == "mem" {
		s.close()
		return nil, usage("mem:// lives inside one process, so a lock in it excludes nobody: name files or a server")
	}
	return s, nil
}

// close gives the engine's connections back. It does not close the client: what matters was released and reported
// before. Closing the client would try a failed release again, for up to five seconds, while somebody waits for the
// exit code of a job that has ended.
func (s *stage) close() {
	if s.e != nil {
		_ = s.e.driver.Close()
	}
	s.signals.stop()
}

// refused returns the error of a lock that was not granted. Closing the client undoes requests that were sent and not
// answered.
//
// It matters after a wait that was given up: the engine may grant the lock to a request that nobody waits for any more,
// and others would then wait for a whole lease.
func (s *stage) refused(o *runOptions, err error) error {
	_ = s.e.client.Close()
	return o.conflict(err)
}

// job is the command that runs under lease.
func (s *stage) job(lease *interlock.Lease, key driver.Key, argv []string) *job {
	return &job{
		hold: lease, budget: s.budget, signals: s.signals, say: s.say,
		name: key.Name, path: s.path, argv: argv, env: s.jobEnvironment(lease), lends: s.e.lends(key),
		connected: s.e.driver.Traits().Lifetime == driver.Sessions, orphans: s.process,
	}
}

// sitOut waits, on engines where nobody else can keep the lock closed, until --min-hold is over, a signal comes, or the
// lock is lost.
//
// The lock needs no care meanwhile: it lasts as long as this process, or its session. A signal ends the pause, and the
// release follows as always. A loss ends it too: there is nothing left to keep.
func (a *app) sitOut(ctx context.Context, o *runOptions, lease *interlock.Lease, signals *signals, until time.Time) {
	left := time.Until(until)
	if left <= 0 {
		return
	}
	// Otherwise a command that has plainly ended would look as if it hung.
	if o.verbose {
		a.say("the command has ended; %q stays held for %s more", lease.Name(), short(left))
	}
	ctx, done := signals.endWait(ctx)
	defer done()
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	case <-lease.Lost():
	}
}

// releaseTime is how long the command tries to give the lock back: to the end of its lease, which frees it too, and
// not for longer than the engine may take for an answer. Whoever waits for the exit code of a job should not wait for a
// server that is gone.
//
// The drift is added because the library's deadline lies that much before the end of the lease at the engine.
func (a *app) releaseTime(deadline time.Time, b budget) time.Duration {
	if deadline.IsZero() { // it does not end by itself
		return a.timeout
	}
	return min(a.timeout, max(time.Until(deadline)+b.drift, minReleaseTime))
}

// minReleaseTime is for holds that have ended by our clock already: the engine may not know that yet.
const minReleaseTime = time.Second

// giveBack releases the lock after the job and finds the exit code. What the job did counts for more than what happened
// to a lock that it no longer needs, except when the lock was gone while it ran. The release has a time of its own: ctx
// may have ended with the job.
//
// The exit code is, in this order:
//
//   - that of the error, if the command could not be started;
//   - 125 if somebody of the job could not be killed: whoever starts it again, as after 79, would start it beside them;
//   - 79, or --lost-exit-code, if the lock was lost while the command ran, whatever the command itself returned;
//   - 125 with --strict-release, if the lock could not be given back;
//   - the command's own.
func (a *app) giveBack(
	ctx context.Context, o *runOptions, lease *interlock.Lease, within time.Duration, end jobEnd, failed error,
) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), within)
	defer cancel()
	// Afterwards it would say that the lock was released, and a loss could not be told from that.
	lost := lease.Err() // as it was before the release
	released := lease.Unlock(ctx)
	if failed != nil {
		return failed
	}
	code := end.code()
	switch {
	case end.unkilled != "":
		return exitWith(exitFailed, unkilledError(end, lost))
	case end.lost && lost == nil: // ended in time, before the loss
		lost = &interlock.LostError{
			Kind: lease.Kind(), Name: lease.Name(), Token: lease.Token(),
			Reason: driver.LostUnconfirmed,
		}
		fallthrough
	case end.lost:
		return exitWith(o.lostExitCode, fmt.Errorf("the command was ended: %w", lost))
	// The command has ended by itself, but the lock was gone before: its last writes may have met another holder.
	case errors.Is(released, interlock.ErrLost) && o.onLost == "kill":
		return exitWith(o.lostExitCode, fmt.Errorf("the command ended with exit code %d, but %w", code, released))
	// Off by default: the lock ends by itself, and cron would mail the failure of a job that has done its work.
	case released != nil && o.strict:
		return exitWith(exitFailed, fmt.Errorf("the command ended with exit code %d, but the lock could not be given "+
			"back: %w", code, released))
	// The job's exit code stands, and its next run may have to wait for the rest of the lease.
	case released != nil:
		a.say("warning: the lock could not be given back: %s", message(released))
	}
	return silently(code)
}

// unkilledError says who works on, and whether the lock is gone meanwhile. It matches no loss: what a program does
// after one, it should not do beside them.
func unkilledError(end jobEnd, lost error) error {
	switch {
	case lost != nil:
		return fmt.Errorf("%s, without the lock: %s", end.unkilled, message(lost))
	case end.lost:
		return fmt.Errorf("%s, and the lock could not be renewed", end.unkilled)
	}
	return fmt.Errorf("%s; the command itself ended with exit code %d", end.unkilled, end.code())
}
