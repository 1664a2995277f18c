// interlock acquire: a lock that outlives the command, for scripts. It goes to the engine's driver and past the client,
// whose holds end with the process; engine.go opens the engine, handle.go writes and reads what the script keeps,
// renew.go renews and releases by it.

package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

// It names the engines on which acquire works, and what to use on the others: the default engine is one of those.
const acquireLong = `Take the lock NAME and keep it after this command has ended, for scripts that cannot use
"interlock run".

The lock is not renewed by itself, so it ends after --lease. The script calls "interlock renew
HANDLE" to keep it longer, and "interlock release HANDLE" when it is done. A Go program can take
the lock over: Client.Adopt accepts the handle. Everybody who has the handle can do all this, so
keep it as you would a password.

acquire works on engines whose holds end with a lease, such as Redis. On the others (files,
ZooKeeper, etcd, MySQL, PostgreSQL) use "interlock run". On files a shell can hold the lock
itself, with "interlock run --fd".

With --export a failure prints lines too: they unset the variables, and set the status to the
exit code. Take the output into a variable first, as below. The shell then stops also when
acquire was killed, and printed nothing.`

// acquireOptions are the flags of acquire. waitGiven tells --wait 0 from no --wait, which means for ever.
type acquireOptions struct {
	lease, wait  time.Duration
	waitGiven    bool
	noWait       bool
	owner, label string
	export       bool
}

// grantObject is what acquire and renew print as JSON. A script needs the handle alone; the other fields save it a
// second command.
type grantObject struct {
	SchemaVersion int    `json:"schemaVersion"`
	Name          string `json:"name"`
	Token         uint64 `json:"token,string"` // as a string: it can be larger than what JavaScript and jq keep exact
	Owner         string `json:"owner"`
	Lease         string `json:"lease"`
	Handle        string `json:"handle"`
}

// acquireCommand describes acquire. The lease has the same default as run's, although nobody renews it: a script that
// needs longer says so, and one that dies blocks others for half a minute.
func (a *app) acquireCommand() *cobra.Command {
	var o acquireOptions
	cmd := &cobra.Command{
		Use:   "acquire NAME",
		Short: "Take a lock that outlives the command, for scripts",
		Long:  acquireLong,
		Example: `  lock=$(interlock acquire deploy --lease 5m --export) || exit
  eval "$lock"
  ...
  interlock renew && ... && interlock release`,
		GroupID:           "jobs",
		Args:              oneName,
		ValidArgsFunction: a.completeFirstName,
		RunE: func(cmd *cobra.Command, args []string) error {
			o.waitGiven = cmd.Flags().Changed("wait")
			return a.acquire(cmd.Context(), &o, args[0])
		},
	}
	flags := cmd.Flags()
	// The flags are those of run with the same words where they mean the same. Nothing runs here, so there are none
	// about a command.
	flags.Var(durationOf(&o.lease, defaultLease), "lease", "how long the lock stays held without a renewal")
	flags.Var(durationOf(&o.wait, 0), "wait", "how long to wait for the lock; 0 means not at all (default: for ever)")
	flags.BoolVarP(&o.noWait, "no-wait", "n", false, "do not wait: the same as --wait 0")
	flags.StringVar(&o.owner, "owner", "", "name of the owner; the same name re-enters the lock")
	flags.StringVar(&o.label, "label", "", "text shown to operators beside the holder")
	flags.BoolVar(&o.export, "export", false, "print lines for a shell to eval instead of JSON")
	return cmd
}

// check says what is wrong with the flags, before the engine is asked. They are the rules of run, as far as acquire has
// the flags.
func (o *acquireOptions) check() error {
	switch {
	case o.wait < 0:
		return usage("--wait %v is negative", o.wait)
	case o.noWait && o.wait > 0:
		return usage("--no-wait and --wait %v contradict each other", o.wait)
	case o.owner != "":
		return cmp.Or(checkName("owner", o.owner), checkLeaseFlag(o.lease), checkLabel(o.label))
	}
	return cmp.Or(checkLeaseFlag(o.lease), checkLabel(o.label))
}

// acquire takes the lock and prints its handle. It tries once and only then waits, so that an engine out of reach shows
// at once, and whoever waits is told for whom.
//
// It asks the driver and not the client: a client renews its holds as long as it is open, and releases them when it is
// closed.
func (a *app) acquire(ctx context.Context, o *acquireOptions, name string) error {
	if err := o.check(); err != nil {
		return err
	}
	signals := catchSignals()
	defer signals.stop()
	e, renewer, err := a.openForHandles(ctx, name)
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }() // closes connections only: the hold was not taken through the client
	traits := e.driver.Traits()
	// This is asked before the lock: the engine would refuse it too, but in other words than the flag's.
	if reason, lacks := traits.Lacking(driver.NamedOwners); lacks && o.owner != "" {
		return fmt.Errorf("--owner: %w: %s", interlock.ErrUnsupported, reason)
	}
	// Allowed all the same, for a trial of the command without a server.
	if e.url.Scheme == "mem" {
		a.say("warning: mem:// lives inside one process: this lock ends with this command")
	}
	// A signal during the wait leaves the queue, and what was granted in that moment is given back below.
	waitCtx, done := signals.endWait(ctx)
	defer done()
	err = a.acquireHandle(waitCtx, e.driver, renewer, o, o.request(name, true), nil)
	var held *interlock.HeldError
	// Every other outcome than that of a lock held by somebody, with time left to wait, is the answer.
	if !errors.As(err, &held) || o.noWait || (o.waitGiven && o.wait == 0) {
		return err
	}
	a.tellWaiting(false, held)
	return a.acquireHandle(waitCtx, e.driver, renewer, o, o.request(name, false), held)
}

// request is what the driver is asked for: first a try, which tells at once whether the engine is out of reach or who
// is in the way, and then to wait. Each has an ID of its own, so that undoing one cannot touch the other. An owner
// without a name gets a random one, and so never re-enters.
func (o *acquireOptions) request(name string, try bool) *driver.Request {
	owner, named := o.owner, o.owner != ""
	if !named {
		owner = newHoldID()
	}
	return &driver.Request{
		Key: driver.Key{Kind: driver.KindMutex, Name: name}, ID: newHoldID(), Owner: owner, Named: named,
		// An operator who looks for the holder finds the script's process.
		Client: clientName(os.Getppid()), // the script: this process has ended before anybody looks
		Label:  o.label, Weight: 1, Lease: o.lease, Tokens: 1, Try: try,
	}
}

// acquireHandle takes the lock and prints the handle. If anything goes wrong, even the printing (a full disk, a closed
// pipe), the lock is given back: nobody would have the handle. known is who was in the way before, or nil.
//
// Horizon is how long the engine refuses a late copy of the request.
func (a *app) acquireHandle(
	ctx context.Context, d driver.Driver, renewer driver.Renewer, o *acquireOptions, r *driver.Request,
	known *interlock.HeldError,
) error {
	grant, err := a.ask(ctx, d, o, r, known)
	if err == nil {
		h := &handle{driver.Handle{
			Engine: d.Traits().Engine, Kind: r.Kind, Name: r.Name, ID: r.ID, Token: grant.Token, Lease: o.lease,
			Owner: r.Owner, Named: r.Named, Label: r.Label,
		}}
		if err = a.confirm(ctx, renewer, grant, h); err == nil {
			err = a.printGrant(h, o.export)
		}
	}
	if err == nil || driver.IsDefinite(err) {
		return err
	}
	// The outcome is not known, so the request is undone. That must work also when ctx has ended, so it has a time of
	// its own. ctx has ended if a signal came, which is the usual reason to undo.
	undoCtx, cancel := a.within(context.WithoutCancel(ctx))
	defer cancel()
	if undo := d.Release(undoCtx, &driver.Release{Key: r.Key, ID: r.ID, Undo: true, Horizon: o.lease}); undo != nil {
		a.say("warning: %q may stay held until its lease of %v has ended: %v", r.Name, o.lease, undo)
	}
	// A signal outweighs the error that it has caused.
	var stopped *signalError
	if errors.As(context.Cause(ctx), &stopped) {
		return stopped
	}
	return err
}

// ask waits for the grant, and finds out whether a wait that is over met a holder or silence. The first is a
// *waitedError and ends with another exit code than the second, which is an engine that does not answer.
//
// The driver may tell of holders from goroutines of its own, so the latest is kept in an atomic pointer.
func (a *app) ask(
	ctx context.Context, d driver.Driver, o *acquireOptions, r *driver.Request, known *interlock.HeldError,
) (driver.Grant, error) {
	var holder atomic.Pointer[driver.HeldError] // the latest that the driver has told of
	r.Waiting = holder.Store
	// Without --wait there is no deadline, and nothing to cancel.
	cancel := context.CancelFunc(func() {})
	switch {
	// A try is one exchange with the engine. A wait is not, so --timeout does not bound it.
	case r.Try:
		ctx, cancel = a.within(ctx)
	case o.waitGiven:
		ctx, cancel = context.WithTimeout(ctx, o.wait)
	}
	defer cancel()
	asked := time.Now()
	grant, err := d.Acquire(ctx, r)
	if err == nil || driver.IsDefinite(err) || driver.Refusal(err) != nil { // a wait that met a refusal has been undone
		return grant, err
	}
	// The time is over, and a holder was seen meanwhile: so the lock is held.
	if h := holder.Load(); h != nil && ctx.Err() != nil {
		// A copy, because what the driver has told is not ours to change.
		held := *h
		held.Kind, held.Name, held.Cause = r.Kind, r.Name, ctx.Err()
		return grant, &waitedError{&held, o.wait}
	}
	// The wait has heard nothing. What the try before it has found still counts for a moment; see lastKnown.
	if known != nil {
		if err := a.lastKnown(ctx, known, asked, err); errors.Is(err, interlock.ErrHeld) {
			return grant, &waitedError{err, o.wait}
		}
	}
	return grant, explained(ctx, engineError("acquire", r.Name, err))
}

// confirm claims the whole lease if the engine has granted a shorter one at first, as for a lock that was pushed, which
// the client has to claim. A script would otherwise begin its work with two seconds left, and renew only after them.
func (a *app) confirm(ctx context.Context, r driver.Renewer, g driver.Grant, h *handle) error {
	if g.Lease >= h.Lease {
		return nil
	}
	ctx, cancel := a.within(ctx)
	defer cancel()
	return renewHandle(ctx, r, h, h.Lease)
}

// printGrant prints the handle, as JSON or as a line for a shell's eval. Names are quoted; the handle has no character
// that a shell would change.
//
// All but INTERLOCK_HANDLE are also variables of a job of run, so a script can read them under either command.
func (a *app) printGrant(h *handle, export bool) error {
	if !export {
		return a.printJSON(grantObject{schemaVersion, h.Name, h.Token, h.Owner, h.Lease.String(), h.String()})
	}
	_, err := fmt.Fprintf(a.stdout, "export INTERLOCK_HANDLE=%s INTERLOCK_NAME=%s INTERLOCK_TOKEN=%d "+
		"INTERLOCK_OWNER=%s\n",
		h, quote(h.Name), h.Token, quote(h.Owner))
	return err
}

// unsetLine is what a shell evaluates after a failure with --export. Nothing at all would leave it with status 0, or
// with the handle of an earlier lock, which it would then renew and release in place of this one. The shell's own exit
// would end a script that wants to go on after a failure; its status is the code of acquire, for "|| exit" and "set
// -e".
func unsetLine(code int) string {
	return fmt.Sprintf("unset INTERLOCK_HANDLE INTERLOCK_NAME INTERLOCK_TOKEN INTERLOCK_OWNER; (exit %d)\n", code)
}

// evaluates reports whether a shell evaluates what cmd prints. The arguments are searched, because a flag behind a
// wrong one is not parsed any more.
func evaluates(cmd *cobra.Command, args []string) bool {
	return cmd != nil && cmd.Name() == "acquire" && slices.ContainsFunc(args, func(arg string) bool {
		value, given := strings.CutPrefix(arg, "--export=")
		on, _ := strconv.ParseBool(value)
		return arg == "--export" || given && on
	})
}

// quote makes s one word for a shell. A shell changes nothing inside single quotes. A single quote in s ends them,
// stands escaped, and begins them again.
func quote(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }
