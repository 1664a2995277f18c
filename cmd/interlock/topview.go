// How top draws itself: frame makes the lines of the screen from the header, the view and the last line. The views are
// the table of all locks, one of them, events, who waits for whom, and help; screen.go sends the lines. A screen is a
// list of lines, and a line a text with one style: so two screens can be compared, and only what differs is sent.

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/console/board"
)

// topStyle is how a line stands out. Each style also shows in the line's text, so that nothing is lost without colours.
type topStyle int

const (
	stylePlain    topStyle = iota
	styleHeader            // names of columns
	styleSelected          // begins with >
	styleWarning           // begins with !
	styleDim
)

// topLine is a line of the screen. Lines are compared to find out what has to be drawn.
type topLine struct {
	text  string
	style topStyle
}

// Sizes below which top shows no table, in cells.
const (
	minTopWidth  = 16
	minTopHeight = 5
)

// frame draws the screen: exactly height lines, none wider than width.
//
// It works for any size: a terminal may be very small for a moment, and that must not end top.
func (m *topModel) frame(now time.Time) []topLine {
	if m.width < minTopWidth || m.height < minTopHeight {
		lines := make([]topLine, max(1, m.height))
		lines[0].text = fit("too small", m.width)
		return lines
	}
	lines := m.head(now)
	body := m.body(now)
	// What is shown of the body begins at from; the selected row is always in it.
	room := m.height - len(lines) - 1 - len(body.head)
	lines = append(lines, body.head...)
	// Scrolling is done here, where the number of lines is known at last.
	m.scroll(body.lines, room)
	for i := m.from; i < min(m.from+room, body.lines); i++ {
		lines = append(lines, body.line(i))
	}
	for len(lines) < m.height-1 {
		lines = append(lines, topLine{})
	}
	lines = append(lines[:m.height-1], m.foot(room, body.lines))
	for i := range lines {
		lines[i].text = fit(lines[i].text, m.width)
	}
	return lines
}

// topBody is a view: lines that stay at the top, and lines that scroll, which are made when they are shown. A table of
// ten thousand locks then costs as much as one of thirty.
type topBody struct {
	head  []topLine
	lines int
	line  func(i int) topLine
}

// body is the view that is shown.
func (m *topModel) body(now time.Time) topBody {
	switch m.view {
	case viewLocks:
		return m.locksBody(now)
	case viewLock:
		return fixed(m.lockLines(now))
	case viewGraph:
		return m.graphBody()
	case viewEvents:
		return m.eventsBody(now)
	case viewHelp:
		return fixed(m.helpLines())
	}
	return topBody{}
}

// fixed is a view whose lines are made already.
func fixed(lines []topLine) topBody {
	return topBody{nil, len(lines), func(i int) topLine { return lines[i] }}
}

// room is how many lines a page has, at least. It is what keys can know, before frame has counted the lines of the
// head.
func (m *topModel) room() int { return max(1, m.height-minTopHeight) }

// scroll keeps from where there is something to show, and the selected row in sight.
func (m *topModel) scroll(lines, room int) {
	m.from = max(0, min(m.from, lines-room))
	if m.view == viewLocks {
		m.from = max(0, min(m.from, m.at), m.at-room+1)
	}
}

// head is what is always shown: the engine, the counts, and what is wrong.
//
// Warnings are in the head, and so in every view: somebody who reads a stale list of waiters must know it.
func (m *topModel) head(now time.Time) []topLine {
	b := m.board
	title := "interlock top"
	for _, s := range []string{b.Engine, b.URL} {
		if s != "" {
			title += "  " + printable(s)
		}
	}
	if b.Prefix != "" {
		title += "  prefix " + printable(b.Prefix)
	}
	clock := now.Local().Format(time.TimeOnly)
	// On a narrow screen the title matters more than the clock.
	if room := m.width - len(clock) - 1; room >= len("interlock top") {
		title = pad(title, room, false) + " " + clock
	}
	lines := []topLine{{title, stylePlain}, {m.counts(now), stylePlain}}
	for _, w := range m.warnings(now) {
		lines = append(lines, topLine{"! " + w, styleWarning})
	}
	return lines
}

// counts sums up the board. What is zero and seldom otherwise is left out.
func (m *topModel) counts(now time.Time) string {
	b := m.board
	waiting := itoa(b.Counts.Waiting)
	if !b.Knows.Waiters.OK {
		waiting = "unknown"
	}
	parts := []string{fmt.Sprintf("held %d", b.Counts.Held), "waiting " + waiting}
	if !b.Taken.IsZero() {
		parts = append(parts, fmt.Sprintf("seen %s ago in %s", short(now.Sub(b.Taken).Round(time.Second)),
			short(time.Duration(b.TookMs)*time.Millisecond)))
	}
	if b.Counts.OldestWaiterMs > 0 {
		parts = append(parts, "oldest wait "+short(time.Duration(b.Counts.OldestWaiterMs)*time.Millisecond))
	}
	for _, c := range []struct {
		what string
		n    int
	}{{"retained", b.Counts.Retained}, {"cooldown", b.Counts.Cooldown}, {"unreadable", b.Counts.Unreadable}} {
		if c.n > 0 {
			parts = append(parts, fmt.Sprintf("%s %d", c.what, c.n))
		}
	}
	return strings.Join(parts, "  ")
}

// warnings are what must not be overlooked.
//
// STALE is in capitals for the same reason for which each warning begins with "!": colours may be off.
func (m *topModel) warnings(now time.Time) (all []string) {
	b := m.board
	age := now.Sub(b.Taken)
	// Only the most important one of these is said: each explains those after it.
	switch {
	case b.SchemaVersion == 0:
		all = append(all, "the engine has not answered yet")
	case !b.Knows.List.OK:
		all = append(all, "this engine does not list locks: "+b.Knows.List.Why)
	case b.Taken.IsZero():
		all = append(all, "the engine does not answer: "+oneLine(b.Error))
	case b.Stale || age > m.late():
		why := ""
		if b.Error != "" {
			why = ": " + oneLine(b.Error)
		}
		all = append(all, fmt.Sprintf("STALE: this is what was seen %s ago%s", short(age.Round(time.Second)), why))
	case b.Error != "":
		all = append(all, "the list is not complete: "+oneLine(b.Error))
	case b.Truncated:
		all = append(all, fmt.Sprintf("only the first %d locks by name are shown; give a PREFIX", len(b.Locks)))
	}
	if n := len(b.Cycles); n > 0 {
		all = append(all, fmt.Sprintf("%s of owners that wait for each other: press g", counted(n, "cycle")))
	}
	return all
}

// late is the age at which a board without an error means that the engine takes its time. After a look that took long
// the next one comes later; see board.Poller. Three looks may fail to come before it is said, since one that is slow is
// no news.
func (m *topModel) late() time.Duration {
	return 3 * max(time.Second, m.interval, 5*time.Duration(m.board.TookMs)*time.Millisecond)
}

// counted is a number with its noun.
func counted(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}

// oneLine makes a message safe for a line of a terminal: control characters, also those of C1, become question marks.
// Errors may quote what a server has sent.
func oneLine(s string) string {
	s = strings.ReplaceAll(strings.TrimPrefix(s, "interlock: "), "\n", "; ")
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == '\x7f' || r >= 0x80 && r < 0xa0 {
			return '?'
		}
		return r
	}, s)
}

// foot is the last line: a question, an answer, or where the view stands. One line serves all three, so that the table
// never jumps.
func (m *topModel) foot(room, lines int) topLine {
	switch {
	case m.prompt == promptFilter:
		return topLine{"filter: " + oneLine(m.input) + "_  (Enter keeps it, Esc takes it away)", stylePlain}
	case m.prompt == promptBreak:
		ask := "> break " + printable(m.target.Name) + " held by " + who(m.target.Client, "", "") +
			", token " + utoa(m.target.Token) + "? Type its name: "
		// What is typed must be seen on a narrow screen too, so the question is cut and not the answer.
		typed := oneLine(m.input) + "_"
		line := topLine{fit(ask, max(0, m.width-cells(typed))) + typed, styleSelected}
		if !strings.HasPrefix(line.text, ">") { // there is no room for the question's mark
			line.style = stylePlain
		}
		return line
	case m.note != "":
		return topLine{"> " + oneLine(m.note), styleSelected}
	}
	where := "nothing"
	if lines > 0 {
		where = fmt.Sprintf("%d-%d of %d", m.from+1, max(m.from+1, min(m.from+room, lines)), lines)
	}
	if m.view != viewLocks {
		return topLine{where + "  Esc back  ? help  q end", styleDim}
	}
	by := "  by " + string(m.order)
	if m.filter != "" {
		by += "  filter " + printable(m.filter)
	}
	return topLine{where + by + "  ? help  q end  Enter open  / filter  g graph  e events  w a l n order", styleDim}
}

// topHolder names the holder of a lock, and how many others there are. The others are in the lock's own view.
func topHolder(l *board.Lock) string {
	if l.Unreadable != "" {
		return "(" + oneLine(l.Unreadable) + ")"
	}
	if len(l.Holders) == 0 {
		return "-"
	}
	h := &l.Holders[0]
	s := orDash(h.Client) + inBrackets(stateMark(h.Retained, h.Cooldown))
	if more := len(l.Holders) - 1; more > 0 {
		s += fmt.Sprintf(" +%d", more)
	}
	return s
}

// topColumn is a column of the table of locks. width is in cells; right aligns to the right.
//
// value makes the text of one cell when the row is shown, and not before.
type topColumn struct {
	title string
	width int
	right bool
	value func(r *topRow, now time.Time) string
}

// Widths of the screen from which on the table has more columns, in cells.
const (
	widthForLease  = 56
	widthForHolder = 76
	widthForLabel  = 120
)

// columns are those that the width has room for. Name, holder and label share what the others leave.
//
// The name is the last to go and the label the first, since a label only adds to what the name says. Numbers have fixed
// widths, so that a column does not move from look to look.
func (m *topModel) columns() []topColumn {
	name := topColumn{title: "NAME", value: func(r *topRow, _ time.Time) string { return printable(r.lock.Name) }}
	kind := topColumn{"KIND", 8, false, func(r *topRow, _ time.Time) string { return string(r.lock.Kind) }}
	holder := topColumn{title: "HOLDER", value: func(r *topRow, _ time.Time) string { return topHolder(r.lock) }}
	label := topColumn{title: "LABEL", value: func(r *topRow, _ time.Time) string {
		return shortLabel(firstLabel(r.lock))
	}}
	held := topColumn{"HELD FOR", 8, true, func(r *topRow, now time.Time) string { return age(r.since, now) }}
	lease := topColumn{"LEASE LEFT", 10, true, func(r *topRow, now time.Time) string { return remaining(r.until, now) }}
	waiting := topColumn{"WAITING", 7, true, func(r *topRow, _ time.Time) string { return waitingText(r.lock) }}
	columns := []topColumn{name, held, waiting}
	var flexible []int // where the columns are whose width is what is left
	switch {
	case m.width >= widthForLabel:
		// Everything. Three columns share what the numbers leave.
		columns, flexible = []topColumn{name, kind, holder, label, held, lease, waiting}, []int{0, 2, 3}
	case m.width >= widthForHolder:
		// Without labels.
		columns, flexible = []topColumn{name, kind, holder, held, lease, waiting}, []int{0, 2}
	case m.width >= widthForLease:
		// Without the holder, whom Enter shows.
		columns, flexible = []topColumn{name, kind, held, lease, waiting}, []int{0}
	default:
		flexible = []int{0}
		if m.width < minTopWidth*2 {
			// There is room for two columns, and the queue says most.
			columns = []topColumn{name, waiting}
		}
	}
	m.share(columns, flexible)
	return columns
}

// share gives the flexible columns what the others leave of the width.
func (m *topModel) share(columns []topColumn, flexible []int) {
	left := m.width - len(topMark(false, false))
	for i := range columns {
		left -= columns[i].width
		if i > 0 {
			left -= len(columnGap)
		}
	}
	// The division rounds down, so the last one gets what is left over.
	for i, c := range flexible {
		columns[c].width = left / (len(flexible) - i)
		left -= columns[c].width
	}
}

// columnGap stands between two columns.
const columnGap = "  "

// topMark is what a row begins with: > where it is selected, ! where it is in a cycle. Marks are characters, because a
// screen or a reader may not tell colours apart.
func topMark(selected, cycle bool) string {
	return string([]byte{mark(selected, '>'), mark(cycle, '!'), ' '})
}

func mark(yes bool, c byte) byte {
	if yes {
		return c
	}
	return ' '
}

// waitingText is the number of waiters, or ? where the engine does not tell.
func waitingText(l *board.Lock) string {
	if l.Waiters == nil {
		return "?"
	}
	return itoa(len(l.Waiters))
}

// firstLabel is the label of the first holder that has one.
func firstLabel(l *board.Lock) string {
	for i := range l.Holders {
		if l.Holders[i].Label != "" {
			return l.Holders[i].Label
		}
	}
	return ""
}

// locksBody is the table of locks. It makes the text only of rows that are shown.
//
// Spaces at the end are cut, so that a line that is copied from the terminal has none.
func (m *topModel) locksBody(now time.Time) topBody {
	columns := m.columns()
	row := func(begin string, cell func(c *topColumn) string) string {
		var s strings.Builder
		s.WriteString(begin)
		for i := range columns {
			if i > 0 {
				s.WriteString(columnGap)
			}
			s.WriteString(pad(cell(&columns[i]), columns[i].width, columns[i].right))
		}
		return strings.TrimRight(s.String(), " ")
	}
	title := row(topMark(false, false), func(c *topColumn) string { return c.title })
	line := func(i int) topLine {
		r := &m.rows[i]
		selected, cycle := i == m.at, m.cycles[r.lock.ID]
		style := stylePlain
		// The selection hides the colour of a cycle; its mark stays.
		switch {
		case selected:
			style = styleSelected
		case cycle:
			style = styleWarning
		}
		return topLine{row(topMark(selected, cycle), func(c *topColumn) string { return c.value(r, now) }), style}
	}
	return topBody{[]topLine{{title, styleHeader}}, len(m.rows), line}
}

// lockLines are one lock: who holds it, who waits, what has happened. A lock that nobody holds any more stays open,
// with its events.
//
// It is one list and not four parts with their own scrolling: a lock has few holders most of the time, and a queue is
// read from its front.
func (m *topModel) lockLines(now time.Time) []topLine {
	// It is asked anew for each frame: the lock may have gone since it was opened.
	l := m.opened()
	if l == nil {
		return append([]topLine{{"Nobody holds this lock or waits for it any more.", stylePlain}, {}},
			m.lockEvents(m.open, now)...)
	}
	title := printable(l.Name) + " (" + string(l.Kind)
	if l.Limit > 1 {
		title += fmt.Sprintf(", %d permits", l.Limit)
	}
	lines := []topLine{{title + ")", styleHeader}}
	// The key is of another program or of a later version, or a right is missing. The engine says which, and no more
	// is known of the lock.
	if l.Unreadable != "" {
		lines = append(lines, topLine{"! " + oneLine(l.Unreadable), styleWarning})
	}
	if m.cycles[l.ID] {
		lines = append(lines, topLine{"! its owners wait for each other: press g", styleWarning})
	}
	lines = append(lines, topLine{}, topLine{counted(len(l.Holders), "holder"), styleHeader})
	// A holder may have gone since it was selected.
	m.openHold = max(0, min(m.openHold, len(l.Holders)-1))
	for i := range l.Holders {
		lines = append(lines, holderLine(&l.Holders[i], i == m.openHold, now))
	}
	lines = append(lines, topLine{})
	lines = append(lines, m.queueLines(l, now)...)
	return append(append(lines, topLine{}), m.lockEvents(l.ID, now)...)
}

// holderLine is one holder as a line. A hold that is retained or in its cooldown shows its state in place of its mode.
func holderLine(h *board.Holder, selected bool, now time.Time) topLine {
	s := topMark(selected, false) + who(h.Client, h.Owner, "")
	if state := stateMark(h.Retained, h.Cooldown); state != "" {
		s += ", " + state
	} else if h.Shared {
		s += ", reads"
	}
	if h.Weight > 1 {
		s += fmt.Sprintf(", %d permits", h.Weight)
	}
	s += forAge(h.Since, now)
	if h.Token != 0 {
		s += ", token " + utoa(h.Token)
	}
	if !h.Until.IsZero() {
		s += ", lease ends in " + remaining(h.Until, now)
	}
	s += labelText(h.Label)
	if selected {
		return topLine{s, styleSelected}
	}
	return topLine{s, stylePlain}
}

// queueLines are the waiters, in their order. The number is the place in the queue as the engine lists it.
func (m *topModel) queueLines(l *board.Lock, now time.Time) []topLine {
	if l.Waiters == nil {
		return []topLine{{"Who waits is unknown: " + oneLine(m.board.Knows.Waiters.Why), stylePlain}}
	}
	lines := []topLine{{fmt.Sprintf("%d waiting", len(l.Waiters)), styleHeader}}
	for i := range l.Waiters {
		w := &l.Waiters[i]
		s := fmt.Sprintf("%3d  %s", i+1, who(w.Client, w.Owner, ""))
		if w.Shared {
			s += ", to read"
		}
		if w.Weight > 1 {
			s += fmt.Sprintf(", %d permits", w.Weight)
		}
		lines = append(lines, topLine{s + forAge(w.Since, now) + labelText(w.Label), stylePlain})
	}
	return lines
}

// labelText is a label at the end of a line, where a long trace in it may be cut.
func labelText(label string) string {
	if label == "" {
		return ""
	}
	return "  " + printable(label)
}

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
