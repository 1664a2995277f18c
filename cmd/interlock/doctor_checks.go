// The checks that doctor makes on every engine: locking, listing, and whether the lease leaves time to end a job.
// doctor.go calls them in turn.

package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/enginekit"
	"golang.org/x/sys/unix"
)

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

// openForTrial opens an engine for a lock for trial. A folder that is there and that this user may not write is opened
// to look, and so is one whose URL says so; the engine says why then.
func (a *app) openForTrial(ctx context.Context, u *driver.URL, raw string, lease time.Duration) (*engine, error) {
	why := ""
	if u.Scheme == "file" {
		switch err := unix.Access(u.Path, unix.W_OK|unix.X_OK); {
		case saysReadOnly(u):
			why = "the URL says readonly=true"
		case err != nil && isFolder(u.Path):
			why = fmt.Sprintf("this user may not write %s (%v)", u.Path, err)
		}
	}
	if why == "" {
		return a.openURL(ctx, raw, &interlock.Options{Lease: lease})
	}
	e, err := a.openLooking(ctx, u, raw)
	if err == nil {
		e.onlyLooks = why
	}
	return e, err
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

// untried is the finding in place of a lock for trial. Who asked to look only is not warned.
func untried(e *engine) driver.Finding {
	if saysReadOnly(e.url) {
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
