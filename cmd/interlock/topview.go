// How top draws itself: frame makes the lines of the screen from the header, the view and the last line. topviews.go
// and topnews.go make the views; screen.go sends the lines. A screen is a list of lines, and a line a text with one
// style: so two screens can be compared, and only what differs is sent.

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
