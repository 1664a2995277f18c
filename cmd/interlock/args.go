// Arguments and flags that several commands share, and their rules. Errors from here are wrong use (exit code 64) and
// come before the engine is asked.

package main

import (
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
