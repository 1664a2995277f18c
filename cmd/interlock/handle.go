// Handles: how a hold is kept by a script between two commands. acquire.go makes one; renew.go gives it back to the
// engine. A handle is text in a shell's variable: it has neither a URL nor a password in it, but whoever knows it can
// release the lock.

package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
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
