// interlock elect: runs a command while this process leads, or prints who leads. It differs from run.go in how the lock
// is taken, and shares the rest: prepare, the job, and the give-back. An election is a lock whose holder has a public
// value (docs/rationale.md, Elections and latches), so what is said of the lock and the lease holds here too.

package main

import (
	"context"
	"errors"
	"os"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

// It is short, because the help of run explains the rest: process group, signals and exit codes are the same.
const electLong = `Campaign in the election NAME, run a command while leading, and exit with the command's exit
code.

elect campaigns for at most --wait, or for ever without it. The command then runs as with
"interlock run", in its own process group. If the leadership is lost, the group is ended before
another campaigner can lead. The exit code is 79 then, so that a service manager can start the
service again; with --again elect campaigns again by itself. The leadership ends when the
command ends.

Everybody can read the leader's --value. With --observe elect runs no command: it prints who
leads, and each change.`

// A value is most often the address at which the leader can be reached, so the example shows one.
const electExample = `  interlock elect scheduler --value $HOSTNAME:8080 -- ./scheduler
  interlock elect scheduler --observe`

// electOptions are the flags of elect, beyond those that run has too. It embeds those of run: prepare, the checks and
// giveBack then need not know which command they serve. Options without a flag of elect, such as --min-hold, stay zero.
type electOptions struct {
	runOptions
	value          string
	observe, again bool
}

// electCommand describes elect, and sets the options for which elect has no flags.
func (a *app) electCommand() *cobra.Command {
	var o electOptions
	cmd := &cobra.Command{
		Use:     "elect NAME [flags] -- CMD [ARG...]",
		Short:   "Run a command while leading, or observe who leads",
		Long:    electLong,
		Example: electExample,
		GroupID: "jobs",
		// The line of Use is complete; cobra would add a second [flags].
		DisableFlagsInUseLine: true,
		ValidArgsFunction:     a.completeFirstName,
	}
	// There is no --on-lost: two leaders at work are what an election is there to prevent.
	o.onLost, o.command = "kill", "elect"
	o.addFlags(cmd)
	cmd.RunE = func(cmd *cobra.Command, args []string) error { return a.runElect(cmd, &o, args) }
	return cmd
}

// addFlags gives cmd the flags of elect. They are declared here and not by addJob, because here they are about a
// leadership and not about a lock.
//
// --label is missing, because the value travels in its place, so that every engine that has labels has elections.
func (o *electOptions) addFlags(cmd *cobra.Command) {
	flags := cmd.Flags()
	flags.SetInterspersed(false) // what stands after the command belongs to the command
	flags.StringVar(&o.value, "value", "",
		"text that everybody can read while this process leads, at most 255 bytes (default: host:pid)")
	flags.BoolVar(&o.observe, "observe", false, "do not campaign: print who leads, and each change")
	flags.BoolVar(&o.again, "again", false, "campaign again after the leadership was lost")
	flags.Var(durationOf(&o.wait, 0), "wait", "maximum time to campaign (default: for ever)")
	flags.IntVarP(&o.conflictExit, "conflict-exit-code", "E", exitHeld,
		"exit code when another process still leads after --wait")
	flags.IntVar(&o.lostExitCode, "lost-exit-code", exitLost,
		"exit code when the leadership was lost while the command ran")
	flags.Var(durationOf(&o.lease, defaultLease), "lease", "how long nobody leads if this machine vanishes")
	flags.Var(durationOf(&o.grace, 0), "kill-grace",
		"time between TERM and KILL (default: 5s, or a sixth of the lease if that is less; on files none)")
	flags.StringVarP(&o.shell, "command", "c", "", "run this with /bin/sh -c instead of CMD")
	flags.BoolVar(&o.strict, "strict-release", false, "exit with 125 if the leadership could not be released")
	flags.BoolVarP(&o.verbose, "verbose", "v", false, "print when this process leads")
}

// runElect reads the arguments, and then observes or campaigns. --observe comes before all checks of a campaign: it
// takes no part, so the flags of one mean nothing.
func (a *app) runElect(cmd *cobra.Command, o *electOptions, args []string) error {
	name, argv, help, err := splitRunArgs(cmd, args)
	switch {
	case err != nil:
		return err
	case help:
		return cmd.Help()
	case o.observe && (len(argv) > 0 || o.shell != ""):
		return usage("--observe runs no command")
	case o.observe:
		return a.observeElection(cmd.Context(), name)
	case len(o.value) > interlock.MaxElectionValue:
		return usage("--value has %d bytes, and at most %d are allowed", len(o.value), interlock.MaxElectionValue)
	}
	o.waitGiven, o.graceGiven = cmd.Flags().Changed("wait"), cmd.Flags().Changed("kill-grace")
	// Its campaign would be over before it began, also where nobody leads.
	if o.waitGiven && o.wait <= 0 {
		return usage("--wait %v must be positive", o.wait)
	}
	if argv, err = o.resolve(name, argv); err != nil {
		return err
	}
	return a.elect(cmd.Context(), o, name, argv)
}

// elect campaigns, runs the command while it leads, and resigns; with --again it begins anew when the leadership was
// lost. A signal that somebody has sent to the job ends it for good, also when the leadership was lost as well. Without
// --again the exit code is 79, and a service manager can start the command again (packaging/systemd). --again needs
// none.
func (a *app) elect(ctx context.Context, o *electOptions, name string, argv []string) error {
	s, err := a.prepare(ctx, &o.runOptions, name, argv[0])
	if err != nil {
		return err
	}
	defer s.close()
	for {
		lease, err := a.lead(ctx, s.e, o, name, s.signals)
		if err != nil {
			return s.refused(&o.runOptions, err)
		}
		j := s.job(lease, driver.Key{Kind: driver.KindElection, Name: name}, argv)
		// So the job can tell others under which value it leads, which may be the default.
		j.env = append(j.env, "INTERLOCK_VALUE="+o.value)
		end, err := j.run(a.stdin, a.stdout, a.stderr)
		err = a.giveBack(ctx, &o.runOptions, lease, a.releaseTime(lease.Deadline(), s.budget), end, err)
		// Without a loss the command has ended by itself, and a signal to it means that nobody wants it any more.
		if !o.again || !end.lost || end.unkilled != "" || j.asked > 0 {
			return err
		}
		// giveBack has tried to release what was left of the hold, so the next campaign should not wait for it.
		a.say("campaigning again: %s", message(err))
	}
}

// lead waits until this process leads. A signal ends the wait with a *signalError. Unlike run it does not try first: a
// candidate need not be told that another process leads.
func (a *app) lead(
	ctx context.Context, e *engine, o *electOptions, name string, signals *signals,
) (*interlock.Lease, error) {
	ctx, done := signals.endWait(ctx)
	defer done()
	waitCtx, cancel := ctx, context.CancelFunc(func() {})
	if o.waitGiven {
		waitCtx, cancel = context.WithTimeout(ctx, o.wait)
	}
	defer cancel()
	// Observers should learn something of the leader in any case.
	if o.value == "" {
		o.value = clientName(os.Getpid())
	}
	began := time.Now()
	lease, err := e.client.Election(name, nil).Campaign(waitCtx, o.value)
	if err == nil {
		// A leadership may come by a push too, and then has to be claimed before the job starts; see claimed.
		lease, err = a.claimed(ctx, lease, o.lease)
	}
	if stopped := (*signalError)(nil); errors.As(context.Cause(ctx), &stopped) {
		// Otherwise nobody would lead until the lease has ended.
		if lease != nil { // granted in the moment of the signal
			undo, cancel := a.within(context.WithoutCancel(ctx))
			defer cancel()
			_ = lease.Unlock(undo) // after an error it ends with its lease
		}
		return nil, stopped
	}
	switch {
	// Another process has led until the end of --wait.
	case errors.Is(err, interlock.ErrHeld):
		return nil, &waitedError{err, o.wait}
	case err == nil:
		a.tellAcquired(&o.runOptions, lease, began)
	}
	return lease, err
}

// leaderObject is a change that elect --observe prints for programs.
type leaderObject struct {
	SchemaVersion int       `json:"schemaVersion"`
	Time          time.Time `json:"time"`
	Name          string    `json:"name"`
	Leads         bool      `json:"leads"` // false: nobody does
	Value         string    `json:"value,omitempty"`
	Client        string    `json:"client,omitempty"`
	Token         uint64    `json:"token,string,omitempty"`
}

// observeElection prints who leads, and each change, until ctx ends. If the engine does not answer the first time, that
// is an error; later it is only told, and observing goes on.
//
// It prints the present leader first, so that a reader that starts late knows as much as one that was there.
func (a *app) observeElection(ctx context.Context, name string) error {
	e, err := a.openToLook(ctx)
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }()
	// An error before the first answer means that the engine cannot be asked at all.
	seen := false
	for l, err := range e.client.Election(name, nil).Observe(ctx) {
		switch {
		// Such an error is told at once, with its exit code, as by every other command.
		case err != nil && !seen:
			return err
		case err != nil:
			a.tellError(err)
			continue
		}
		seen = true
		if err := a.printLeader(name, l); err != nil {
			return err
		}
	}
	return nil
}

// printLeader prints one change. An error of the write ends observing: nobody reads any more.
func (a *app) printLeader(name string, l interlock.Leader) error {
	now := time.Now()
	if a.output == asJSON {
		return a.printJSON(leaderObject{schemaVersion, now, name, l.Token != 0, l.Value, l.Client, l.Token})
	}
	// Nobody leads if the token is zero.
	line := now.Format(time.TimeOnly) + "  nobody leads\n"
	if l.Token != 0 {
		line = now.Format(time.TimeOnly) + "  leader  " + orDash(l.Value) + "  " + orDash(l.Client) + ", token " +
			utoa(l.Token) + "\n"
	}
	_, err := a.stdout.Write([]byte(line))
	return err
}
