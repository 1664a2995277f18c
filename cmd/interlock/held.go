// Errors about a lock that somebody holds, in words. report.go's message comes here. The same words are in the messages
// of a wait, in the errors of all commands, and in -o json.

package main

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock"
)

// describe says an error in words. Errors that name a holder get ages and remaining times beside the instants, because
// a reader wants those.
//
// The library's errors have instants, which stay true in a log. An age is true only at the moment when it is printed.
func describe(err error) string {
	var held *interlock.HeldError
	if errors.As(err, &held) {
		return prefixOf(err) + describeHeld(held, time.Now())
	}
	return err.Error()
}

// waitedError is the error of a wait that has met a holder until its end. held is a *HeldError, or wraps one.
type waitedError struct {
	held   error
	waited time.Duration
}

// Error says how long the wait was, and who holds the lock.
func (e *waitedError) Error() string { return e.prefix() + e.held.Error() }

// Unwrap returns the HeldError.
func (e *waitedError) Unwrap() error { return e.held }

// prefix is what stands before the text of the HeldError.
func (e *waitedError) prefix() string { return fmt.Sprintf("gave up after %v: ", e.waited) }

// prefixOf is the prefix of a waitedError, or nothing for others.
func prefixOf(err error) string {
	var waited *waitedError
	if errors.As(err, &waited) {
		return waited.prefix()
	}
	return ""
}

// describeHeld names the lock, its holder, since when, the token and the rest of the lease, as far as the engine tells
// them. A label is left out: it may be long, and get shows it.
func describeHeld(h *interlock.HeldError, now time.Time) string {
	var b strings.Builder
	fmt.Fprintf(&b, "%q is held", h.Name)
	// What the engine does not tell is left out.
	if h.Client != "" {
		fmt.Fprintf(&b, " by %s", printable(h.Client))
	}
	if h.Owner != "" {
		fmt.Fprintf(&b, " (owner %s)", printable(h.Owner))
	}
	if !h.Since.IsZero() {
		fmt.Fprintf(&b, " since %s (%s ago)", clock(h.Since, now), short(now.Sub(h.Since)))
	}
	// The token is what break --token takes.
	if h.Token != 0 {
		fmt.Fprintf(&b, ", token %d", h.Token)
	}
	// "unless renewed": the end of the lease is not the end of the wait.
	if !h.Until.IsZero() {
		fmt.Fprintf(&b, "; lease ends in %s unless renewed", short(h.Until.Sub(now)))
	}
	return b.String()
}

// clock shows the time of day, with the date if that is not today's.
func clock(t, now time.Time) string {
	t, now = t.Local(), now.Local()
	if t.Format(time.DateOnly) == now.Format(time.DateOnly) {
		return t.Format(time.TimeOnly)
	}
	// Local time without a zone, because the reader sits at this machine; the JSON of ls and get has the zone too.
	return t.Format(time.DateTime)
}

// short rounds a duration to what a reader can use. The engine's clock may differ from ours, so a negative one is shown
// as zero. Nobody needs the last digits of 1m3.482917s.
func short(d time.Duration) string {
	switch {
	case d <= 0:
		return "0s"
	case d < time.Millisecond:
		return d.Round(10 * time.Microsecond).String()
	case d < time.Second:
		return d.Round(time.Millisecond).String()
	case d < time.Minute:
		return d.Round(100 * time.Millisecond).String()
	case d < 48*time.Hour:
		return d.Round(time.Second).String()
	}
	return fmt.Sprintf("%dd%dh", int(d.Hours())/24, int(d.Hours())%24)
}
