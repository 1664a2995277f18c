// Views of top that are text: events, who waits for whom, and help. topview.go scrolls them.

package main

import (
	"strings"
	"time"

	"github.com/interlock-go/interlock/console/board"
)

// lockEvents are the events of one lock. They begin with top and not with the lock: engines keep no history.
func (m *topModel) lockEvents(id string, now time.Time) []topLine {
	lines := []topLine{{"events since top was started", styleHeader}}
	// The events of all locks are in one list, which the poller bounds, so this look through it is short.
	for i := range m.board.Events {
		if e := &m.board.Events[i]; board.ID(e.Kind, e.Name) == id {
			lines = append(lines, topLine{eventText(e, now, false), stylePlain})
		}
	}
	if len(lines) == 1 {
		lines = append(lines, topLine{"none", styleDim})
	}
	return lines
}

// eventsBody is what has happened to all locks, newest first. The lines are made when they are shown, because there may
// be many.
//
// The header says what a poll cannot see, since a list of events looks complete.
func (m *topModel) eventsBody(now time.Time) topBody {
	b := fixed([]topLine{{"none yet", styleDim}})
	if events := m.board.Events; len(events) > 0 {
		b = topBody{lines: len(events), line: func(i int) topLine {
			return topLine{eventText(&events[i], now, true), stylePlain}
		}}
	}
	const title = "EVENTS since top was started, newest first; what is shorter than a look is not seen"
	b.head = []topLine{{title, styleHeader}}
	return b
}

// eventText is one event as a line, with the lock's name if named. The label stands last, because it is the longest and
// may be cut.
func eventText(e *board.Event, now time.Time, named bool) string {
	s := clock(e.Time, now) + "  " + pad(string(e.Event), len(board.Released), false) + "  "
	if named {
		s += printable(e.Name) + " (" + string(e.Kind) + ")  "
	}
	s += who(e.Client, e.Owner, "")
	if e.Token != 0 {
		s += ", token " + utoa(e.Token)
	}
	// The reason may quote the engine, so it is made safe for one line.
	if e.Why != "" {
		s += ": " + oneLine(e.Why)
	}
	return s + labelText(e.Label)
}

// graphBody is who waits for whom: first the cycles, then every pair. If the engine does not tell who waits, the view
// says so: an empty list would look like good news.
func (m *topModel) graphBody() topBody {
	b := m.board
	head := []topLine{{"WHO WAITS FOR WHOM", styleHeader}}
	if !b.Knows.Waiters.OK {
		why := topLine{"Who waits is unknown: " + oneLine(b.Knows.Waiters.Why), stylePlain}
		return topBody{append(head, why), 0, nil}
	}
	// The cycles come first, because they are what somebody looks for here.
	line := func(i int) topLine {
		if i < len(b.Cycles) {
			return topLine{"! cycle: " + cycleText(b.Cycles[i]), styleWarning}
		}
		return edgeLine(&b.Edges[i-len(b.Cycles)])
	}
	switch {
	case len(b.Edges) == 0:
		head = append(head, topLine{"nobody waits", styleDim})
	case b.EdgesTruncated:
		head = append(head, topLine{"! there are more than these, and maybe more cycles", styleWarning})
	}
	return topBody{head, len(b.Cycles) + len(b.Edges), line}
}

// edgeLine is one pair. Its mark and colour are those of a row of the table.
func edgeLine(e *board.Edge) topLine {
	s := endpointText(e.Waiter) + " waits for " + printable(e.Name) + " (" + string(e.Kind) + "), held by " +
		endpointText(e.Holder) + inBrackets(stateMark(false, e.Cooldown))
	if e.Cycle {
		return topLine{topMark(false, true) + s, styleWarning}
	}
	return topLine{topMark(false, false) + s, stylePlain}
}

// cycleText is the owners of a cycle, with the first once more at the end. The repetition shows that it is a circle and
// no chain.
func cycleText(cycle []string) string {
	owners := make([]string, 0, len(cycle)+1)
	// The full slice expression makes append copy: cycle is a part of the board.
	for _, n := range append(cycle[:len(cycle):len(cycle)], cycle[0]) {
		owners = append(owners, printable(n))
	}
	return strings.Join(owners, " -> ")
}

// topHelp is the help of ?; topLong says the rest. It is in the manual page too, so it is text and not drawn.
const topHelp = `up down j k          select a lock, or a holder of the open lock
PgUp PgDn Home End   move by a page, or to the first or last row
Enter                open the lock: who holds it, who waits, what has happened
Esc                  go back; in the table, remove the filter
w a l n              sort by waiters, age of the hold, lease left, name
/                    filter by a part of a name, kind, client, owner or label
g                    show who waits for whom, and cycles
e                    show what has happened
b                    break the selected hold, after you type its lock's name
q                    quit

> marks what is selected, ! what needs attention: a lock whose owners wait for
each other, or an engine that does not answer. ? stands for a number that the
engine does not tell.`

// helpLines are the help, and why b is off if it is. A user who looks up b should learn here that it does nothing.
func (m *topModel) helpLines() []topLine {
	var lines []topLine
	for line := range strings.Lines(topHelp) {
		lines = append(lines, topLine{strings.TrimRight(line, "\n"), stylePlain})
	}
	if off := m.breakOff(); off != "" {
		lines = append(lines, topLine{}, topLine{off, stylePlain})
	}
	return lines
}

// indented is a text of a help, moved to the right as in others. Empty lines stay empty.
func indented(s string) string {
	return "  " + strings.ReplaceAll(strings.ReplaceAll(s, "\n", "\n  "), "\n  \n", "\n\n")
}
