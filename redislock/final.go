// Which answers end a wait. acquire_ask.go asks in heartbeat, watch.go before it asks again; refusal.go says what an
// error means to the caller.

package redislock

import (
	"errors"
	"slices"
	"strings"
)

// An answer to a heartbeat ends the wait if the server would repeat it until somebody changes its set-up: a removed
// right, a password that is no longer valid, a key that is no lock, a command that is missing.
//
// A wait outlasts what passes by itself: LOADING, BUSY, TRYAGAIN, MOVED, ASK, CLUSTERDOWN, MASTERDOWN and READONLY,
// which are parts of a restart or a failover; NOREPLICAS, until the replicas are back; OOM and MISCONF, until there is
// room again; too many connections; and whatever is not known here. An unknown error must not cost a waiter its place.
var (
	// finalCodes are the first words of such answers. Since Redis 7 that includes answers about a command inside a
	// script.
	finalCodes = []string{"NOPERM", "NOAUTH", "WRONGPASS", "DENIED", "WRONGTYPE"}
	// finalTexts are parts of such answers that begin with another word: Redis 6 packs the error of a command in a
	// script into one of its own, and some errors have no word of their own.
	finalTexts = []string{
		"unknown command", "Unknown Redis command", "Unknown command called",
		"The user executing the script can't", "ACL failure in script",
		"-NOPERM ", "-WRONGTYPE ", ": WRONGTYPE ",
	}
)

// isFinal reports whether err is such an answer.
func isFinal(err error) bool {
	if err == nil {
		return false
	}
	message := innermost(err)
	code, _, _ := strings.Cut(message, " ")
	return slices.Contains(finalCodes, code) ||
		slices.ContainsFunc(finalTexts, func(text string) bool { return strings.Contains(message, text) })
}

// innermost is the text of the error that err wraps last, without what was added on its way. For joined errors it is
// "": they may contradict each other.
func innermost(err error) string {
	for inner := err; inner != nil; inner = errors.Unwrap(inner) {
		err = inner
	}
	if _, joined := err.(interface{ Unwrap() []error }); joined { // nothing is inside
		return ""
	}
	return err.Error()
}
