// interlock acquire, renew and release: locks that outlive the command, for scripts. They go to the engine's driver
// and past the client, whose holds end with the process. What the script keeps between two commands is a handle: text
// in a shell's variable, without a URL or a password in it. Whoever knows it can release the lock, on another machine
// and as another user too.

package main

import (
	"cmp"
	"context"
	"crypto/rand"
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

// handle is a hold that outlives the process that took it, for a script to pass around. It is what Lease.Handle
// returns: so a program can adopt what interlock acquire has taken, and renew and release accept a program's.
type handle struct{ driver.Handle }

// newHoldID makes an ID that is never used again. It must not be guessed either, since the engine knows a hold by it
// alone: rand.Text has at least 128 random bits.
func newHoldID() string { return rand.Text() }

// String is what scripts keep of the hold; parseHandle reads it.
func (h *handle) String() string { return h.Encode() }

// key is the lock of the handle.
func (h *handle) key() driver.Key { return driver.Key{Kind: h.Kind, Name: h.Name} }

// parseHandle reads a handle. Everything that is wrong with it is wrong use.
//
// The name is checked once more, because a handle comes from outside like an argument.
func parseHandle(s string) (*handle, error) {
	h, err := driver.ParseHandle(s)
	if err != nil {
		return nil, usage("%v; it is what interlock acquire prints, or Lease.Handle returns", err)
	}
	return &handle{h}, checkName("name in the handle", h.Name)
}

// handleArg returns the handle of the argument, or else of INTERLOCK_HANDLE.
//
// An argument counts before the variable, so that a script with two locks can name one of them. "acquire --export" sets
// the variable.
func (a *app) handleArg(cmd *cobra.Command, args []string) (*handle, error) {
	if len(args) > 0 {
		return parseHandle(args[0])
	}
	if s := a.getenv("INTERLOCK_HANDLE"); s != "" {
		return parseHandle(s)
	}
	return nil, usage("%s wants a handle, or INTERLOCK_HANDLE to be one", cmd.CommandPath())
}

// openForHandles opens an engine on which a hold outlives its process. On any other it says why a handle makes no
// sense, and what to use for the lock name instead.
//
// On the other engines the lock would be free as soon as acquire has ended, and the script would work without one. That
// is worse than no lock, so it is refused.
func (a *app) openForHandles(ctx context.Context, name string) (*engine, driver.Renewer, error) {
	e, err := a.open(ctx, nil)
	if err != nil {
		return nil, nil, err
	}
	traits := e.driver.Traits()
	renewer, ok := e.driver.(driver.Renewer)
	// Without leases a hold ends with the process or its session, and this process ends now.
	if traits.Lifetime == driver.Leases && ok {
		return e, renewer, nil
	}
	_ = e.close() // nothing was taken
	return nil, nil, fmt.Errorf("%w: on %s a hold ends with its %s, so it cannot outlive this command; use "+
		"\"interlock run\"%s",
		interlock.ErrUnsupported, e.url, traits.Lifetime, a.shellInstead(e, name))
}

// shellInstead says how a shell itself holds a mutex in files, or nothing on other engines. The line works as it
// stands: it names the engine if --url did, because the environment does not.
//
// Descriptor 9 is the one of flock(1)'s manual. The file is opened by <> and not by >, which would empty it.
func (a *app) shellInstead(e *engine, name string) string {
	files, ok := e.driver.(descriptorLocker)
	if !ok {
		return ""
	}
	command := "interlock run " + quote(name) + " --fd 9"
	if a.url != "" {
		command += " --url " + quote(a.url)
	}
	path := files.Path(driver.Key{Kind: driver.KindMutex, Name: name})
	return ", or let the shell hold it until it ends or closes the file: exec 9<>" + quote(path) + " && " + command
}

// renewHandle renews h for lease from now. It blocks until the engine has answered.
//
// The request has owner and label too, since an engine may have to write the whole record anew.
func renewHandle(ctx context.Context, r driver.Renewer, h *handle, lease time.Duration) error {
	result := make(chan error, 1) // Renew calls done once, maybe before it returns
	r.Renew(ctx, []driver.Renewal{{Key: h.key(), ID: h.ID, Lease: lease, Owner: h.Owner, Label: h.Label}},
		func(_ int, err error) { result <- err })
	return engineError("renew", h.Name, <-result)
}

// engineError makes of a driver's raw error what the library's client would: an error that says nothing definite about
// the lock means that the engine is unavailable.
//
// So acquire, renew and release have the exit codes of run for the same failures.
func engineError(op, name string, err error) error {
	var complete *interlock.UnavailableError
	switch {
	case err == nil:
		return nil
	case driver.IsDefinite(err) || isLost(err) || errors.As(err, &complete) || driver.Refusal(err) != nil:
		return err
	}
	return &interlock.UnavailableError{Op: op, Name: name, Err: err}
}

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

// renewCommand describes renew. It has no --wait: a lease that is over cannot come back, however long one waits.
func (a *app) renewCommand() *cobra.Command {
	var lease time.Duration
	cmd := &cobra.Command{
		Use:   "renew [HANDLE]",
		Short: "Renew a lock that acquire took",
		Long: `Renew the lock for its lease, counted from now. Without HANDLE, renew uses $INTERLOCK_HANDLE.

The exit code is 79 if the lock was lost. Another owner may hold it by now, so the script must
stop.`,
		GroupID: "jobs",
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.handleArg(cmd, args)
			if err != nil {
				return err
			}
			// Without the flag the lease is the handle's own.
			if cmd.Flags().Changed("lease") {
				if err := checkLeaseFlag(lease); err != nil {
					return err
				}
				h.Lease = lease
			}
			return a.renew(cmd.Context(), h)
		},
	}
	cmd.Flags().Var(durationOf(&lease, 0), "lease",
		"new lease (default: that of acquire); a renewal never shortens the time left")
	return cmd
}

// renew renews the hold and prints it. The JSON has a new handle, since --lease may have changed what is in it.
//
// After 79 the lock is lost, and set -e ends the script. After 69 the script may try again until the lease is over.
//
// The lease is counted from now and never gets shorter: the engine takes the later of the two ends.
func (a *app) renew(ctx context.Context, h *handle) error {
	e, renewer, err := a.openForHandles(ctx, h.Name)
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }()
	// Asked about a hold of another engine, this one would only say that it is gone.
	if err := h.Of(e.driver.Traits()); err != nil {
		return err
	}
	ctx, cancel := a.within(ctx)
	defer cancel()
	if err := renewHandle(ctx, renewer, h, h.Lease); err != nil {
		return named(h, err)
	}
	if a.output == asJSON {
		return a.printJSON(grantObject{schemaVersion, h.Name, h.Token, h.Owner, h.Lease.String(), h.String()})
	}
	_, err = fmt.Fprintf(a.stdout, "%q is held for another %v\n", h.Name, h.Lease)
	return err
}

// releaseCommand describes release. It takes no name: another owner may hold a lock of that name by now.
func (a *app) releaseCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "release [HANDLE]",
		Short: "Release a lock that acquire took",
		Long: `Release the lock. Without HANDLE, release uses $INTERLOCK_HANDLE.

The exit code is 79 if the lock had been lost before: the last steps of the script may have
overlapped with another holder. A second release within an hour changes nothing and exits with
0, if the engine remembers the first. Otherwise it cannot be told from a loss.`,
		GroupID: "jobs",
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			h, err := a.handleArg(cmd, args)
			if err != nil {
				return err
			}
			return a.release(cmd.Context(), h)
		},
	}
}

// releaseObject is what release prints as JSON.
type releaseObject struct {
	SchemaVersion int    `json:"schemaVersion"`
	Name          string `json:"name"`
	Token         uint64 `json:"token,string"`
	Released      bool   `json:"released"`
	Already       bool   `json:"already,omitempty"` // an earlier release had given it back
}

// rememberRelease is how long the engine remembers that a hold was released. A script that releases, and does so
// again in its trap for EXIT, comes within that.
const rememberRelease = time.Hour

// release gives the hold back. A hold that this script has released before is no error: its trap may do so again.
//
// It is two requests. The first gives the lock back; the second has the engine remember that, so that a release in a
// trap for EXIT can be told from a loss. They are not one: a plain release says whether there was a hold to end, and an
// undo does not.
func (a *app) release(ctx context.Context, h *handle) error {
	e, _, err := a.openForHandles(ctx, h.Name)
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }()
	if err := h.Of(e.driver.Traits()); err != nil {
		return err
	}
	ctx, cancel := a.within(ctx)
	defer cancel()
	// The ID alone tells the engine which hold is meant, so a later holder is never hit.
	err = e.driver.Release(ctx, &driver.Release{Key: h.key(), ID: h.ID})
	already := isReleased(err)
	switch {
	case already:
	case err != nil:
		return named(h, engineError("release", h.Name, err))
	default:
		// A failure does no harm: a second release is then told that the hold is gone, and not why. By now the lock is
		// free, whatever becomes of this.
		_ = e.driver.Release(ctx, &driver.Release{Key: h.key(), ID: h.ID, Undo: true, Horizon: rememberRelease})
	}
	if a.output == asJSON {
		return a.printJSON(releaseObject{schemaVersion, h.Name, h.Token, true, already})
	}
	// The two differ in words alone: both exit with 0.
	words := map[bool]string{false: "is given back", true: "was already released"}
	_, err = fmt.Fprintf(a.stdout, "%q %s\n", h.Name, words[already])
	return err
}

// isLost reports whether err says that a hold is gone.
func isLost(err error) bool { return errors.Is(err, interlock.ErrLost) }

// isReleased reports whether err says that the hold was released before. An engine that remembers this refuses the
// request's ID with ErrLost; one that has lost the hold says how, in a LostError.
//
// So a release after a loss is never reported as a repeated one.
func isReleased(err error) bool {
	var lost *interlock.LostError
	return isLost(err) && !errors.As(err, &lost)
}

// goneError says that an engine has no hold of a handle, and why as far as that is known. It matches ErrLost.
type goneError struct {
	h        *handle
	released bool
	err      error
}

// Error says what has happened, or what may have: no engine remembers all of it for ever.
func (e *goneError) Error() string {
	if e.released {
		return fmt.Sprintf("%q was already released (token %d)", e.h.Name, e.h.Token)
	}
	return fmt.Sprintf("this handle no longer holds %q: its lease had ended, or it was released before, and another "+
		"may have had the lock since (token %d)",
		e.h.Name, e.h.Token)
}

// Unwrap returns the engine's error.
func (e *goneError) Unwrap() error { return e.err }

// named says what is known of a hold that the engine does not find. A lock that was broken, or whose server forgot it,
// keeps the engine's own words, which say so.
func named(h *handle, err error) error {
	var lost *interlock.LostError
	switch {
	case isReleased(err):
		return &goneError{h, true, err}
	case errors.As(err, &lost) && (lost.Reason == driver.LostExpired || lost.Reason == driver.LostTaken):
		return &goneError{h, false, err}
	}
	return err
}
