// The table of ls, and how names, tokens and times look in all tables. locks.go prints it; topviews.go uses the same
// words. The table is for people, and its columns may change. Programs read the JSON.

package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/driver"
)

// printTable prints one line for each holder, and one for a lock that is only waited for.
//
// A semaphore or a read/write lock has a line for each holder, so that each has its own age and token. The lines repeat
// the name: grep then finds all of them.
func (a *app) printTable(locks []interlock.LockInfo, waitersKnown bool) error {
	now := time.Now()
	w := tabwriter.NewWriter(a.stdout, 0, 0, 2, ' ', 0)
	fmt.Fprintln(w, "NAME\tKIND\tHOLDER\tOWNER\tLABEL\tHELD FOR\tLEASE ENDS IN\tTOKEN\tWAITING")
	for _, l := range locks {
		// A dash is not 0: the engine does not tell.
		waiting := "-"
		if waitersKnown {
			waiting = itoa(len(l.Waiters))
		}
		// The record cannot be read, so nothing else is known of the lock.
		if l.Unreadable != "" {
			fmt.Fprintf(w, "%s\t%s\t(%s)\n", printable(l.Name), l.Kind, l.Unreadable)
			continue
		}
		// Otherwise a lock that is free, and has a queue that is about to move, would be missing.
		if len(l.Holders) == 0 {
			fmt.Fprintf(w, "%s\t%s\t-\t-\t-\t-\t-\t-\t%s\n", printable(l.Name), l.Kind, waiting)
		}
		for _, h := range l.Holders {
			fmt.Fprintf(w, "%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\t%s\n",
				printable(l.Name), l.Kind, holder(h), orDash(h.Owner), shortLabel(h.Label),
				age(h.Since, now), remaining(h.Until, now), tokenOrDash(h.Token), waiting)
		}
	}
	return w.Flush()
}

// holder names a client, and says so if nobody holds the lock although it is not free. Without the remark an operator
// would look for a process that is done with the lock.
func holder(h driver.Holder) string {
	return orDash(h.Client) + inBrackets(stateMark(h.Retained, h.Cooldown))
}

// stateMark is the state of a lock that is not free although no owner holds it, or nothing: retained by a client until
// another wants it, or in its cooldown after its owner is done.
func stateMark(retained, cooldown bool) string {
	switch {
	case retained:
		return "retained"
	case cooldown:
		return "cooldown"
	}
	return ""
}

// inBrackets is a remark in parentheses, or nothing.
func inBrackets(s string) string {
	if s == "" {
		return ""
	}
	return " (" + s + ")"
}

// printable quotes a name that has a space, a tab, a newline or an escape sequence in it. Otherwise it could break a
// table, or a terminal. Names come from programs, and could hold what moves the cursor or changes the title of a
// terminal. A space is quoted too, or the columns could not be told apart.
func printable(s string) string {
	if q := fmt.Sprintf("%q", s); q != `"`+s+`"` || strings.Contains(s, " ") {
		return q
	}
	return s
}

// orDash shows what an engine does not tell as a dash, never as nothing. An empty cell would shift the columns for awk
// and for the eye.
func orDash(s string) string {
	if s == "" {
		return "-"
	}
	return printable(s)
}

// shortLabel leaves the trace of a call, with which a label may end, out of a table, because it is 67 characters wide.
// get shows it, and so does JSON. They are "traceparent=" and the 55 of a trace context of W3C.
func shortLabel(label string) string {
	plain, _, traced := strings.Cut(" "+label, " traceparent=")
	if !traced {
		return orDash(label)
	}
	if plain = strings.TrimPrefix(plain, " "); plain == "" {
		return "(traced)"
	}
	return printable(plain) + " (traced)"
}

// tokenOrDash shows a token, or a dash for a hold without one.
func tokenOrDash(token uint64) string {
	if token == 0 {
		return "-"
	}
	return utoa(token)
}

// age is how long something has lasted, or a dash where the engine does not tell.
func age(since, now time.Time) string {
	if since.IsZero() {
		return "-"
	}
	return short(now.Sub(since))
}

// forAge says how long something has lasted, or nothing where the engine does not tell.
func forAge(since, now time.Time) string {
	if since.IsZero() {
		return ""
	}
	return " for " + age(since, now)
}

// remaining is the time until an instant, or a dash where the engine does not tell. At 0s the lease is over, and the
// engine has not noticed yet, or its clock differs.
func remaining(until, now time.Time) string {
	if until.IsZero() {
		return "-"
	}
	return short(until.Sub(now))
}
