// interlock doctor: the checks of an engine's set-up, printed as they stand when the time is over. The checks here are
// made on every engine: locking, listing, and whether the lease leaves time to end a job. Those that know a server are
// its driver's Diagnose; some of them also warn when the engine is opened, of which the warnings of engine.go make
// lines.

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"text/tabwriter"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"github.com/spf13/cobra"
	"golang.org/x/sys/unix"
)

// It says what doctor does to the engine, because it is run against production.
const doctorLong = `Check an engine: can it be reached, can a lock be taken and released, can locks be listed, and
does it answer quickly enough for the lease? The engine's own checks of its server's settings
follow. doctor takes one lock, with a name of its own, for a moment, and changes nothing else.
It makes no folder of lock files, and takes no lock in one that it may not write; it says so.
All checks together take at most --timeout, even if the engine hangs.

The exit code is 0 if all is well, 1 with warnings, and 2 if locks do not work or a guarantee
does not hold.`

// doctorCommand describes doctor. The URL may be an argument, because doctor is often the first command that is run
// with a new one.
func (a *app) doctorCommand() *cobra.Command {
	lease := defaultLease
	cmd := &cobra.Command{
		Use:     "doctor [URL]",
		Short:   "Check an engine's set-up",
		Long:    doctorLong,
		GroupID: "look",
		Args:    atMostOne,
		RunE: func(cmd *cobra.Command, args []string) error {
			if err := checkLeaseFlag(lease); err != nil {
				return err
			}
			if len(args) > 0 {
				if err := (*urlFlag)(&a.url).Set(args[0]); err != nil {
					return usage("%v", err)
				}
			}
			return a.doctor(cmd.Context(), lease)
		},
	}
	cmd.Flags().Var(durationOf(&lease, defaultLease), "lease", "lease that your locks use")
	return cmd
}

// checksPage is the chapter that explains doctor's own checks. Engines say where theirs are explained.
const checksPage = "docs/doctor.md#findings-on-every-engine"

// diagnosis is what doctor prints as JSON.
type diagnosis struct {
	SchemaVersion int             `json:"schemaVersion"`
	URL           string          `json:"url"`
	Engine        string          `json:"engine,omitempty"`
	Level         driver.Level    `json:"level"`
	Findings      []findingObject `json:"findings"`
}

// findingObject is one finding in it.
type findingObject struct {
	Check  string       `json:"check"`
	Level  driver.Level `json:"level"`
	Detail string       `json:"detail"`
	Advice string       `json:"advice,omitempty"`
	Page   string       `json:"page,omitempty"`
}

// examination is a diagnosis that grows. The checks add to it in one goroutine while another may print: a check that
// never returns must not keep the rest from being printed.
//
// The findings are under a mutex and not in a channel: printing needs all that is there now, and a check must not block
// after the reader has gone.
type examination struct {
	mu    sync.Mutex // guards found
	found diagnosis
}

// newExamination begins one in which all is well so far. The URL is shown without its password.
func newExamination(u *driver.URL) *examination {
	return &examination{found: diagnosis{SchemaVersion: schemaVersion, URL: u.String(), Level: driver.LevelOK}}
}

// add takes findings in. The diagnosis is as bad as its worst finding.
func (x *examination) add(findings ...driver.Finding) {
	order := []driver.Level{driver.LevelOK, driver.LevelWarn, driver.LevelFail}
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, f := range findings {
		x.found.Findings = append(x.found.Findings, findingObject(f))
		if slices.Index(order, f.Level) > slices.Index(order, x.found.Level) {
			x.found.Level = f.Level
		}
	}
}

// own takes in findings of doctor's own checks, with the page that explains them.
func (x *examination) own(findings ...driver.Finding) {
	x.add(enginekit.Explained(checksPage, findings)...)
}

// so returns a copy of what has been found so far. The findings are cloned, since a check that hangs may still come
// back and append.
func (x *examination) so() *diagnosis {
	x.mu.Lock()
	defer x.mu.Unlock()
	d := x.found
	d.Findings = slices.Clone(d.Findings)
	return &d
}

// doctorGrace is how long a check may take to return after its context has ended. A check that obeys its context ends
// within that, with a finding of its own.
const doctorGrace = time.Second

// doctor examines the engine and prints the findings. A check that hangs, as on a file system that hangs, does not
// return when its context ends. So the checks run in a goroutine, which is left behind a second after --timeout; then
// what is known is printed, and the process ends.
//
// The exit codes 0, 1 and 2 are also what a check of Nagios returns, so doctor can be one.
func (a *app) doctor(ctx context.Context, lease time.Duration) error {
	raw, err := a.engineURL()
	if err != nil {
		return err
	}
	u, err := parseEngineURL(raw)
	if err != nil {
		return err
	}
	if a.timeout <= 0 {
		// openURL says the same, but inside a goroutine and after a context that would have ended at once.
		return usage("--timeout %v must be positive", a.timeout)
	}
	ctx, cancel := a.within(ctx)
	defer cancel()
	x := newExamination(u)
	opened := make(chan *engine, 1)
	hangs, err := a.examineInTime(ctx, x, raw, lease, opened)
	if err != nil {
		return err
	}
	// From here on the findings do not change, even if a check that hung comes back.
	d := x.so()
	if err := a.printDiagnosis(d); err != nil {
		return err
	}
	// Closing a client over a file system that hangs would hang too, and the process ends anyway.
	if len(opened) > 0 && !hangs {
		_ = (<-opened).close()
	}
	return silently(map[driver.Level]int{driver.LevelOK: 0, driver.LevelWarn: 1, driver.LevelFail: 2}[d.Level])
}

// examineInTime runs the checks in a goroutine, and reports whether one of them still hangs doctorGrace after ctx has
// ended. That is a finding too. A goroutine that hangs is left behind: the process ends soon after.
func (a *app) examineInTime(
	ctx context.Context, x *examination, raw string, lease time.Duration, opened chan<- *engine,
) (hangs bool, err error) {
	examined := make(chan error, 1)
	// This goroutine ends with the checks. One that hangs ends with the process.
	go func() { examined <- a.examine(ctx, x, raw, lease, opened) }()
	// late ends doctorGrace after ctx.
	late, stop := context.WithCancel(context.Background())
	defer stop()
	defer context.AfterFunc(ctx, func() { time.AfterFunc(doctorGrace, stop) })()
	select {
	case err := <-examined:
		return false, err
	case <-late.Done():
		x.own(enginekit.Fail("reach", "see whether the server, or the file system, hangs",
			"a check has not come back within %v (--timeout)", a.timeout))
		return true, nil
	}
}

// examine opens the engine and runs the checks. Errors of the URL are returned, because they are wrong use; every other
// error of opening is a finding.
func (a *app) examine(
	ctx context.Context, x *examination, raw string, lease time.Duration, opened chan<- *engine,
) error {
	u, err := parseEngineURL(raw)
	if err != nil {
		return err
	}
	if isMissing(u) {
		x.own(a.checkMissing(u)...)
		return nil
	}
	e, err := a.openForTrial(ctx, u, raw, lease)
	if err != nil {
		// A URL that makes no sense is wrong use and no finding about a server.
		if judge(err).exit != exitUnavailable {
			return err
		}
		x.own(enginekit.Fail("reach", "check the address, user and password, the network and the server", "%s",
			message(err)))
		return nil
	}
	// The channel has a buffer, so examine does not block when doctor has given up.
	opened <- e
	a.examineOpen(ctx, x, e, lease)
	return nil
}

// examineAnew examines for a console, whose engine only looks. It opens an engine for itself.
func (a *app) examineAnew(ctx context.Context, x *examination) error {
	raw, err := a.engineURL()
	if err != nil {
		return err
	}
	opened := make(chan *engine, 1)
	defer func() {
		if len(opened) > 0 {
			_ = (<-opened).close()
		}
	}()
	return a.examine(ctx, x, raw, defaultLease, opened)
}

// examineOpen runs the checks on an engine that has been opened: first those that every engine gets, then the engine's
// own. The server decides the timeout of sessions, so that is judged and not the flag.
//
// The console calls it as well, for its own page of findings.
func (a *app) examineOpen(ctx context.Context, x *examination, e *engine, lease time.Duration) {
	traits := e.driver.Traits()
	x.mu.Lock()
	x.found.Engine = traits.Engine
	x.mu.Unlock()
	x.own(enginekit.Fine("reach", "%s answers; holds end with their %s", e.url, traits.Lifetime))
	if e.onlyLooks != "" {
		x.own(untried(e))
	} else {
		x.own(a.checkLocking(ctx, e, lease))
	}
	x.own(a.checkListing(ctx, e))
	// Files need no lease, so there is nothing to judge.
	if traits.Lifetime != driver.Process {
		if traits.Lifetime == driver.Sessions {
			lease = traits.Timeout
		}
		x.own(checkLease(lease))
	}
	if d, ok := e.driver.(driver.Diagnoser); ok {
		x.add(d.Diagnose(ctx)...)
	}
}

// printDiagnosis prints the findings, for people with advice below each and the page only where something is wrong. On
// a page that is all OK, links would be noise.
func (a *app) printDiagnosis(d *diagnosis) error {
	if a.output == asJSON {
		return a.printJSON(d)
	}
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	for _, f := range d.Findings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", strings.ToUpper(string(f.Level)), f.Check, f.Detail)
		if f.Advice != "" {
			fmt.Fprintf(w, "\t\t-> %s\n", f.Advice)
		}
		if f.Page != "" && f.Level != driver.LevelOK {
			fmt.Fprintf(w, "\t\tsee %s\n", f.Page)
		}
	}
	return w.Flush()
}

// rounds is how often doctor locks and unlocks: enough to see an outlier, few enough to be over at once.
const rounds = 5

// checkLocking takes and gives back a lock of its own, and compares the slowest time with the pause between two
// renewals: a renewal takes about as long, so a lease whose renewals take longer than the pause cannot be kept.
//
// It measures a lock and an unlock, which is two round trips on most engines, where a renewal is one. So it errs on the
// side of a warning.
func (a *app) checkLocking(ctx context.Context, e *engine, lease time.Duration) driver.Finding {
	ctx, cancel := half(ctx)
	defer cancel()
	var took []time.Duration
	for range rounds {
		began := time.Now()
		if err := a.lockOnce(ctx, e); err != nil {
			return enginekit.Fail("lock", "check permissions and the server's log", "%s", message(err))
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	slowest := took[rounds-1]
	f := driver.Finding{
		Check: "lock", Level: driver.LevelOK,
		Detail: fmt.Sprintf("lock and unlock: median %s, slowest %s of %d", fine(took[rounds/2]), fine(slowest),
			rounds),
	}
	switch {
	// A hold that ends with its process needs no renewals, so no time is too long.
	case e.driver.Traits().Lifetime == driver.Process:
	case slowest >= lease/3:
		f.Level, f.Advice = driver.LevelFail, fmt.Sprintf("slower than the pause between renewals (%v): a lease of "+
			"%v cannot be kept; lengthen it", lease/3, lease)
	// A tenth of the pause: an outlier ten times as slow would cost a renewal.
	case slowest >= lease/30:
		f.Level, f.Advice = driver.LevelWarn, fmt.Sprintf("more than a tenth of the pause between renewals (%v): "+
			"consider a longer lease", lease/3)
	}
	return f
}

// openForTrial opens an engine for a lock for trial, or only to look where that lock would make something or cannot be
// taken; the engine says why then.
func (a *app) openForTrial(ctx context.Context, u *driver.URL, raw string, lease time.Duration) (*engine, error) {
	opts := &interlock.Options{Lease: lease}
	if !makesByOpening(u) {
		return a.openURL(ctx, raw, opts)
	}
	why := ""
	switch err := unix.Access(u.Path, unix.W_OK|unix.X_OK); {
	case saysReadOnly(u):
		why = "the URL says readonly=true"
	case u.Scheme != "file":
		return a.openTables(ctx, u, raw, opts)
	case err != nil && isFolder(u.Path):
		why = fmt.Sprintf("this user may not write %s (%v)", u.Path, err)
	default:
		return a.openURL(ctx, raw, opts)
	}
	e, err := a.openLooking(ctx, u, raw, opts)
	if err == nil {
		e.onlyLooks = why
	}
	return e, err
}

// openTables is openForTrial of an SQL database: a doctor does not make the tables.
func (a *app) openTables(ctx context.Context, u *driver.URL, raw string, opts *interlock.Options) (*engine, error) {
	e, err := a.openLooking(ctx, u, raw, opts)
	if err != nil {
		return nil, err
	}
	d, diagnoses := e.driver.(driver.Diagnoser)
	missing := func(f driver.Finding) bool { return f.Check == "tables" }
	if diagnoses && slices.ContainsFunc(d.Diagnose(ctx), missing) {
		e.onlyLooks = "that would make the tables"
		return e, nil
	}
	if err := e.close(); err != nil {
		return nil, err
	}
	return a.openURL(ctx, raw, opts)
}

// saysReadOnly reports whether the user's URL asks to look only.
func saysReadOnly(u *driver.URL) bool {
	yes, _ := strconv.ParseBool(u.Query.Get("readonly")) // the engine tells what is wrong with it
	return yes
}

// isFolder reports whether a folder is there.
func isFolder(path string) bool {
	info, err := os.Stat(path)
	return err == nil && info.IsDir()
}

// untried is the finding in place of a lock for trial. Who asked to look only is not warned, nor is it wrong that there
// are no tables before the first lock.
func untried(e *engine) driver.Finding {
	if saysReadOnly(e.url) || e.url.Scheme != "file" {
		return enginekit.Fine("lock", "not tried: %s", e.onlyLooks)
	}
	return enginekit.Warn("lock", "programs that lock must be able to write the folder; ask for its group, or name "+
		"another", "not tried: %s", e.onlyLooks)
}

// checkMissing judges a folder that is not there. It is not made: the URL may be mistyped. That the default one is not
// there before the first lock is well, if it can be made.
func (a *app) checkMissing(u *driver.URL) []driver.Finding {
	above := filepath.Dir(u.Path)
	for !isFolder(above) && above != filepath.Dir(above) {
		above = filepath.Dir(above)
	}
	if err := unix.Access(above, unix.W_OK|unix.X_OK); err != nil {
		return []driver.Finding{enginekit.Fail("reach", "name a folder that this user can make, or make it",
			"there is no folder %s, and this user may not make one in %s: %v", u.Path, above, err)}
	}
	tried := enginekit.Fine("lock", "not tried, since that would make the folder")
	if !a.namesEngine() {
		return []driver.Finding{
			enginekit.Fine("reach", "there is no folder %s yet; the first lock makes it", u.Path), tried,
		}
	}
	return []driver.Finding{enginekit.Warn("reach", "see whether the path is right; the first lock makes the folder",
		"there is no folder %s", u.Path), tried}
}

// lockOnce locks and unlocks once. It waits if another doctor is at work. The name is always the same, because some
// engines keep something of every name.
//
// Two doctors wait for each other for some milliseconds. That is less harm than a new name in the engine for each run.
func (a *app) lockOnce(ctx context.Context, e *engine) error {
	lease, err := e.client.Lock(ctx, "interlock-doctor")
	if err == nil {
		err = lease.Unlock(ctx)
	}
	return explained(ctx, err)
}

// checkListing lists all locks. A failure is a warning only, because locks work without a list.
func (a *app) checkListing(ctx context.Context, e *engine) driver.Finding {
	ctx, cancel := half(ctx)
	defer cancel()
	began := time.Now()
	locks, err := a.listLocks(ctx, e, "")
	if err != nil {
		return enginekit.Warn("list", "ls, get, watch and conflict messages will know less", "%s", message(err))
	}
	return enginekit.Fine("list", "locks in use: %d, listed in %s", len(locks), fine(time.Since(began)))
}

// half bounds a check to half of the time that is left, so that those after it have some too if the engine hangs. ctx
// has a deadline: every doctor has --timeout for all of its checks.
//
// Locking has a half of what opening has left, listing a quarter, and the engine's own checks the rest.
func half(ctx context.Context) (context.Context, context.CancelFunc) {
	deadline, _ := ctx.Deadline()
	left := time.Until(deadline) / 2
	return context.WithTimeoutCause(ctx, left,
		fmt.Errorf("no answer within %v, half of what was left of --timeout", ms(left)))
}

// checkLease does the arithmetic of run with its default grace, and shows the times that follow from it. The numbers
// are shown also when all is well: they say when a job gets TERM.
func checkLease(lease time.Duration) driver.Finding {
	b := newBudget(lease, defaultGrace(lease))
	f := driver.Finding{
		Check: "lease", Level: driver.LevelOK,
		Detail: fmt.Sprintf("%v: renewed every %v; without renewals a job gets TERM after %v, KILL after %v, and the "+
			"lock is free after %v",
			lease, ms(b.renewal), ms(lease-b.drift-b.margin-b.grace), ms(lease-b.drift-b.margin), lease),
	}
	// The text is the one that run would print for this lease.
	if err := b.check(); err != nil {
		f.Level, f.Detail, f.Advice = driver.LevelFail, err.Error(), "lengthen the lease"
	}
	return f
}

// fine rounds short times so that enough digits are left.
func fine(d time.Duration) time.Duration {
	if d < time.Millisecond {
		return d.Round(time.Microsecond)
	}
	return d.Round(10 * time.Microsecond)
}
