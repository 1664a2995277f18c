// Views of top that show locks: the table of all, and one of them. topview.go scrolls and cuts them.

package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/interlock-go/interlock/console/board"
)

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
