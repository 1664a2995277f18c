// The table of ls, how names, tokens and times look in all tables, and how wide text is. topview.go uses the same
// words and widths. The table is for people, and its columns may change; programs read the JSON. A terminal has one
// cell for a Latin letter and two for a Chinese character, so neither bytes nor characters tell where a column ends.

package main

import (
	"fmt"
	"strings"
	"text/tabwriter"
	"time"
	"unicode"
	"unicode/utf8"

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

// wide are the characters that take two cells of a terminal: those that annex 11 of Unicode calls wide or full-width.
// The ranges leave out no script in which people write names.
//
// Package unicode has no table of widths, and golang.org/x/text would be one more module in the light build.
var wide = &unicode.RangeTable{
	R16: []unicode.Range16{
		{0x1100, 0x115f, 1},
		{0x231a, 0x231b, 1},
		{0x23e9, 0x23ec, 1},
		{0x25fd, 0x25fe, 1},
		{0x2614, 0x2615, 1},
		{0x2648, 0x2653, 1},
		{0x26a1, 0x26a1, 1},
		{0x26bd, 0x26be, 1},
		{0x26d4, 0x26d4, 1},
		{0x2705, 0x2705, 1},
		{0x270a, 0x270b, 1},
		{0x274c, 0x274c, 1},
		{0x2753, 0x2755, 1},
		{0x2795, 0x2797, 1},
		{0x2b50, 0x2b50, 1},
		{0x2e80, 0x303e, 1},
		{0x3041, 0x33ff, 1},
		{0x3400, 0x4dbf, 1},
		{0x4e00, 0x9fff, 1},
		{0xa000, 0xa4cf, 1},
		{0xa960, 0xa97f, 1},
		{0xac00, 0xd7a3, 1},
		{0xf900, 0xfaff, 1},
		{0xfe30, 0xfe6f, 1},
		{0xff00, 0xff60, 1},
		{0xffe0, 0xffe6, 1},
	},
	R32: []unicode.Range32{
		{0x16fe0, 0x18aff, 1},
		{0x1b000, 0x1b2ff, 1},
		{0x1f18e, 0x1f18e, 1},
		{0x1f191, 0x1f19a, 1},
		{0x1f200, 0x1f320, 1},
		{0x1f32d, 0x1f335, 1},
		{0x1f337, 0x1f37c, 1},
		{0x1f37e, 0x1f393, 1},
		{0x1f3a0, 0x1f3ca, 1},
		{0x1f3e0, 0x1f3f0, 1},
		{0x1f3f8, 0x1f43e, 1},
		{0x1f440, 0x1f440, 1},
		{0x1f442, 0x1f4fc, 1},
		{0x1f4ff, 0x1f53d, 1},
		{0x1f550, 0x1f567, 1},
		{0x1f5fb, 0x1f64f, 1},
		{0x1f680, 0x1f6c5, 1},
		{0x1f6cc, 0x1f6cc, 1},
		{0x1f6d5, 0x1f6df, 1},
		{0x1f7e0, 0x1f7eb, 1},
		{0x1f90c, 0x1f9ff, 1},
		{0x1fa70, 0x1faff, 1},
		{0x20000, 0x3fffd, 1},
	},
}

// cellsOf is how many cells of a terminal r takes. A character that combines with the one before takes none.
//
// Joiners of emoji take none either. Terminals differ in how they draw such sequences, so screen.go switches wrapping
// off.
func cellsOf(r rune) int {
	switch {
	case r < 0x300:
		return 1
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case unicode.Is(wide, r):
		return 2
	}
	return 1
}

// cells is how many cells of a terminal s takes. s has no control characters. As long as it is ASCII, bytes are
// counted. top asks for each cell of each row in each second, and most names are ASCII.
func cells(s string) int {
	n := 0
	for i := 0; i < len(s); i++ {
		if s[i] >= utf8.RuneSelf {
			for _, r := range s[i:] {
				n += cellsOf(r)
			}
			return n
		}
		n++
	}
	return n
}

// cutMark is the last cell of a text that was cut. It is one cell and ASCII, so it shows in every font and encoding.
const cutMark = "~"

// fit cuts s to at most so many cells. It never cuts a wide character in two, so the result may be one cell shorter.
//
// The mark takes the place of the last cell that is left, so a cut name is never taken for a whole one.
func fit(s string, most int) string {
	if most <= 0 {
		return ""
	}
	if len(s) <= most || cells(s) <= most { // no character has more cells than bytes
		return s
	}
	n := 0
	for i, r := range s {
		if n += cellsOf(r); n > most-len(cutMark) {
			return s[:i] + cutMark
		}
	}
	return s
}

// pad makes s exactly so many cells wide. With right it stands at the right.
//
// A number stands at the right, so that its digits are below each other.
func pad(s string, width int, right bool) string {
	s = fit(s, width)
	space := strings.Repeat(" ", max(0, width-cells(s)))
	if right {
		return space + s
	}
	return s + space
}
