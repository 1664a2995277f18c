// Arguments and flags that several commands share, their rules, and their completion in the shell. Errors from here
// are wrong use (exit code 64) and come before the engine is asked. Completion prints no errors, and is short: a
// message would overwrite the line that the user is typing, and a slow engine would block the prompt.

package main

import (
	"context"
	"errors"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/driver"
	"github.com/spf13/cobra"
)

// noArgs and its relatives are cobra's validators with errors that count as wrong use. Cobra's own errors would count
// as failures of interlock (125), since nothing tells them from others.
func noArgs(cmd *cobra.Command, args []string) error {
	if len(args) > 0 {
		return usage("%s takes no arguments, got %q", cmd.CommandPath(), args[0])
	}
	return nil
}

// atMostOne is for an argument that may be left out, such as a prefix.
func atMostOne(cmd *cobra.Command, args []string) error {
	if len(args) > 1 {
		return usage("%s takes at most one argument, got %q too", cmd.CommandPath(), args[1])
	}
	return nil
}

// oneName accepts exactly one argument, the name of a lock. The commands that run a job do not use it: there the
// command follows the name.
func oneName(cmd *cobra.Command, args []string) error {
	if len(args) == 0 {
		return usage("%s wants the name of a lock", cmd.CommandPath())
	}
	if err := atMostOne(cmd, args); err != nil {
		return err
	}
	return checkName("lock name", args[0])
}

// checkName is the rule for names of locks and owners: 1 to 512 bytes of valid UTF-8. The library has the same; here
// the error is one of use.
//
// The library checks names again. Here a wrong one costs no connection, and has exit code 64 on every engine.
func checkName(what, name string) error {
	switch {
	case name == "":
		return usage("the %s is empty", what)
	case len(name) > 512:
		return usage("the %s has %d bytes: at most 512 are allowed", what, len(name))
	case !utf8.ValidString(name):
		return usage("the %s %q is not valid UTF-8", what, name)
	}
	return nil
}

// The leases that package interlock accepts.
const (
	// The library does not export them. It checks again, so a difference would only change the message.
	shortestLease = 10 * time.Millisecond
	longestLease  = 50 * 365 * 24 * time.Hour
)

// checkLeaseFlag is the rule for leases: one that has ended before its holder hears of the grant protects nothing.
func checkLeaseFlag(lease time.Duration) error {
	if lease < shortestLease || lease > longestLease {
		return usage("--lease %v must be from %v to %v", lease, shortestLease, longestLease)
	}
	return nil
}

// checkLabel is the rule for labels, which are stored for operators to read. The length is the library's.
func checkLabel(label string) error {
	if len(label) > 256 || !utf8.ValidString(label) {
		return usage("--label must be at most 256 bytes of valid UTF-8")
	}
	return nil
}

// kindFlag is the value of --kind. It is a type of its own, so that a mistyped kind is refused with the list of all,
// and TAB offers them.
type kindFlag driver.Kind

// kinds are the values that --kind accepts. Latches and conditions are accepted, though they have no holders: get then
// says that the lock is free.
var kinds = [...]driver.Kind{
	driver.KindMutex, driver.KindRWMutex, driver.KindSemaphore, driver.KindLatch, driver.KindCond, driver.KindElection,
}

// addKindFlag gives cmd a --kind with completion. about is the beginning of its help.
func addKindFlag(cmd *cobra.Command, k *kindFlag, about string) {
	var names []string
	for _, kind := range kinds {
		names = append(names, string(kind))
	}
	cmd.Flags().Var(k, "kind", about+": "+strings.Join(names, ", "))
	completeFlag(cmd, "kind", names...)
}

// String returns the kind. It, Set and Type make a kindFlag a flag.
func (k *kindFlag) String() string { return string(*k) }

// Set accepts the kinds that exist.
func (k *kindFlag) Set(s string) error {
	if !slices.Contains(kinds[:], driver.Kind(s)) {
		return errors.New("there is no such kind of lock")
	}
	*k = kindFlag(s)
	return nil
}

// Type names the value in help texts.
func (k *kindFlag) Type() string { return "KIND" }

// itoa and utoa keep lines of text short, in which numbers stand between words.
func itoa(n int) string { return strconv.Itoa(n) }

func utoa(n uint64) string { return strconv.FormatUint(n, 10) }

// durationFlag is the value of a flag that is a time span: as Go writes it, such as 1m30s, or a plain number of
// seconds, as sleep and flock take it.
//
// A plain number means seconds here. In Go it would be nanoseconds.
type durationFlag time.Duration

// durationOf makes p the value of a flag, with a default.
func durationOf(p *time.Duration, otherwise time.Duration) *durationFlag {
	*p = otherwise
	return (*durationFlag)(p)
}

// Set accepts both ways to write a duration. A value that has only the characters of a number is one, in seconds.
//
// Exponents, hexadecimal numbers, inf and nan are refused: they are no way to write a time for people.
func (d *durationFlag) Set(s string) error {
	if strings.Trim(s, "+-.0123456789") == "" {
		s += "s"
	}
	parsed, err := time.ParseDuration(s)
	if err != nil {
		return errors.New("must be a duration such as 500ms or 1m30s, or a number of seconds such as 5 or 0.5")
	}
	*d = durationFlag(parsed)
	return nil
}

// String shows a zero as 0, which the help leaves out. Of a type that it does not know, pflag takes "0" for no default,
// and "0s" for one.
func (d *durationFlag) String() string {
	if *d == 0 {
		return "0"
	}
	return time.Duration(*d).String()
}

// Type names the value in help texts.
func (d *durationFlag) Type() string { return "duration" }

// checkInterval refuses a pause between two looks that is zero or negative: the command would ask without end.
func checkInterval(interval time.Duration) error {
	if interval <= 0 {
		return usage("--interval %v must be positive", interval)
	}
	return nil
}

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
