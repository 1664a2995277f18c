// interlock renew and interlock release: what a script does with the handle of acquire. handle.go reads the handle and
// opens the engine. Both need the handle alone: they may run on another machine, and as another user, than acquire.

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
