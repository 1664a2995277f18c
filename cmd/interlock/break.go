// interlock break: ends somebody else's hold, after asking. locks.go finds the lock; the client's Break does the rest.
// the model of top does the same. Breaking is for a holder that has ended or hangs. A holder that works
// on is told of the loss, but may be in the middle of a write.

package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

// The risk comes first: breaking a lock does not stop its holder.
const breakLong = `End the current hold of the lock NAME. The holder is told, but one that is suspended learns of
it only later. Make sure that the holder has stopped, or that the resource checks fencing
tokens.

break asks for confirmation unless --yes is given. Without a terminal to ask at, --yes is
required. With --token it ends the hold only if the token still belongs to the current holder,
so that it cannot hit a new holder.

The exit code is 1 if the lock is not held, or if the answer is no.`

// breakOptions are the flags of break. token is 0 if none was given. 0 is no token, so it can stand for none.
type breakOptions struct {
	kind  kindFlag
	token uint64
	yes   bool
}

// breakCommand describes break. --kind has a default here, unlike in get: a name alone must not break the locks of
// every kind.
func (a *app) breakCommand() *cobra.Command {
	o := breakOptions{kind: kindFlag(driver.KindMutex)}
	cmd := &cobra.Command{
		Use:               "break NAME",
		Short:             "End another owner's hold of a lock",
		Long:              breakLong,
		GroupID:           "look",
		Args:              oneName,
		ValidArgsFunction: a.completeFirstName,
		RunE: func(cmd *cobra.Command, args []string) error {
			return a.breakLock(cmd.Context(), &o, args[0])
		},
	}
	flags := cmd.Flags()
	addKindFlag(cmd, &o.kind, "kind of the lock")
	flags.Uint64Var(&o.token, "token", 0, "only if the current holder has this token (default: any holder)")
	flags.BoolVarP(&o.yes, "yes", "y", false, "do not ask for confirmation")
	return cmd
}

// breakLock finds the holder, asks, and ends the hold under the token that was shown: a holder that came meanwhile has
// another token, and is not hit.
//
// So the person breaks the hold that the question has shown, however long the answer takes.
func (a *app) breakLock(ctx context.Context, o *breakOptions, name string) error {
	e, err := a.openToLook(ctx) // files, which it changes, cannot be broken
	if err != nil {
		return err
	}
	defer func() { _ = e.close() }()
	holder, err := a.holderToBreak(ctx, e, o, name)
	if err != nil {
		return err
	}
	// This comes after the look for the holder, because the advice names its process.
	if reason, lacks := e.driver.Traits().Lacking(driver.Breaking); lacks {
		return fmt.Errorf("break %q: %w: %s%s", name, interlock.ErrUnsupported, reason, e.adviseKill(holder))
	}
	if err := a.confirmBreak(o, name, holder); err != nil {
		return err
	}
	ctx, cancel := a.within(ctx)
	defer cancel()
	if err := e.client.Break(ctx, driver.Kind(o.kind), name, holder.Token); err != nil {
		return err
	}
	if a.output == asJSON {
		// The object has the token, so a script can tell which hold it has ended.
		return a.printJSON(brokenObject{schemaVersion, driver.Kind(o.kind), name, holder.Token, true})
	}
	// With --token and --yes the holder was not looked for.
	by := ""
	if holder.Client != "" {
		by = " by " + who(holder.Client, holder.Owner, holder.Label)
	}
	_, err = fmt.Fprintf(a.stdout, "%s is broken: it was held%s, token %d\n", printable(name), by, holder.Token)
	return err
}

// brokenObject is what break prints as JSON.
type brokenObject struct {
	SchemaVersion int         `json:"schemaVersion"`
	Kind          driver.Kind `json:"kind"`
	Name          string      `json:"name"`
	Token         uint64      `json:"token,string"`
	Broken        bool        `json:"broken"`
}

// holderToBreak finds the holder that is meant. A token that is not a holder's first one may be a later one of its
// block, which only the engine can tell: it is passed on as it is. An engine that cannot list is asked to break that
// token unseen. Without a token and with several holders it is wrong use to choose one.
//
// A block of tokens is what a client gets when it passes the lock on inside its process without asking the engine.
func (a *app) holderToBreak(ctx context.Context, e *engine, o *breakOptions, name string) (driver.Holder, error) {
	if _, lacks := e.driver.Traits().Lacking(driver.Breaking); o.token != 0 && o.yes && !lacks {
		return driver.Holder{Token: o.token}, nil // nobody has to be shown, and finding the lock may mean listing all
	}
	found, err := a.findLock(ctx, e, driver.Kind(o.kind), name)
	// An engine that cannot tell holders can still compare tokens.
	if errors.Is(err, interlock.ErrUnsupported) && o.token != 0 {
		return driver.Holder{Token: o.token}, nil
	}
	if err != nil {
		return driver.Holder{}, err
	}
	if len(found) == 0 || len(found[0].Holders) == 0 {
		return driver.Holder{}, fmt.Errorf("break %q: %w", name, interlock.ErrNotHeld)
	}
	holders := found[0].Holders
	if o.token == 0 && len(holders) > 1 {
		// Readers and holders of permits share a lock; each is a hold of its own.
		return driver.Holder{}, usage("%q has %d holders: say with --token which one is meant (see interlock get)",
			name, len(holders))
	}
	for _, h := range holders {
		if o.token == 0 || h.Token == o.token {
			return h, nil
		}
	}
	return driver.Holder{Token: o.token}, nil
}

// confirmBreak asks a person, if there is one. Without a terminal it refuses, and a script has to say --yes. The
// question goes to stderr, so that it is seen when stdout is a pipe. The default is no: Enter alone breaks nothing.
func (a *app) confirmBreak(o *breakOptions, name string, h driver.Holder) error {
	if o.yes {
		return nil
	}
	if !isTerminal(a.stdin) || !isTerminal(a.stderr) {
		return usage("break %q: there is no terminal to ask at; if you are sure, give --yes", name)
	}
	fmt.Fprintf(a.stderr, "%s is held by %s%s, token %d.\nBreak it? [y/N] ", printable(name),
		who(h.Client, h.Owner, h.Label), forAge(h.Since, time.Now()), h.Token)
	// An end of the input is no answer either.
	answer, err := bufio.NewReader(a.stdin).ReadString('\n')
	if s := strings.ToLower(strings.TrimSpace(answer)); err != nil || (s != "y" && s != "yes") {
		return exitWith(exitNone, fmt.Errorf("%q was not broken", name))
	}
	return nil
}
