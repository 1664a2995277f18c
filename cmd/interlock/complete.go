// Completion in the shell: names of locks, URLs and the values of flags. Cobra calls these functions when somebody
// presses TAB; they print no errors. An error message would overwrite the line that the user is typing, and a slow
// engine would block the prompt.

package main

import (
	"context"
	"time"

	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

// completionTime is how long pressing TAB may take. An engine that does not answer by then has no names to offer.
const completionTime = 300 * time.Millisecond

// completeFirstName offers the names of locks in use for the first argument.
//
// Only locks in use are offered, because engines list no others.
func (a *app) completeFirstName(cmd *cobra.Command, args []string, prefix string) ([]string, cobra.ShellCompDirective) {
	if len(args) > 0 {
		return nil, cobra.ShellCompDirectiveDefault // the command of run: the shell's own completion knows better
	}
	names := make(chan []string, 1) // a list that comes too late finds room, so its goroutine ends
	ctx, cancel := context.WithTimeout(cmd.Context(), completionTime)
	defer cancel()
	// This goroutine ends when the engine answers or ctx ends. Opening may outlast its context, so it is not waited
	// for.
	go func() { names <- a.lockNames(ctx, prefix) }()
	select {
	case found := <-names:
		return found, cobra.ShellCompDirectiveNoFileComp
	// The shell offers nothing then, in place of files of the folder, which are no names of locks.
	case <-ctx.Done():
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// lockNames returns the names that it can get; errors have no place on a command line that is being typed. Locks of
// several kinds with one name follow each other, so comparing neighbours is enough.
func (a *app) lockNames(ctx context.Context, prefix string) []string {
	e, err := a.openToLook(ctx)
	if err != nil {
		return nil
	}
	defer func() { _ = e.close() }()
	locks, _ := a.listLocks(ctx, e, prefix)
	var names []string
	for i, l := range locks {
		// Locks of several kinds may have one name, which is offered once.
		if i == 0 || locks[i-1].Name != l.Name {
			names = append(names, l.Name)
		}
	}
	return names
}

// completeURL offers the beginnings of the URLs that this build knows. The rest is for the user to type. NoSpace,
// because the rest of the URL follows at once.
func completeURL(*cobra.Command, []string, string) ([]string, cobra.ShellCompDirective) {
	var schemes []string
	for _, scheme := range driver.DefaultMux.Schemes() {
		schemes = append(schemes, scheme+"://")
	}
	return schemes, cobra.ShellCompDirectiveNoSpace | cobra.ShellCompDirectiveNoFileComp
}

// completeFlag offers the values of a flag. It panics if there is no such flag, which every start of the command would
// show.
func completeFlag(cmd *cobra.Command, flag string, values ...string) {
	if err := cmd.RegisterFlagCompletionFunc(flag,
		cobra.FixedCompletions(values, cobra.ShellCompDirectiveNoFileComp)); err != nil {
		panic(err)
	}
}
