// What top shows and how it answers to keys, without a terminal, so that tests can drive it: the selected lock, the
// rows and their order, and the question before a break. top.go gives it keys and boards; topview.go draws it. A model
// without a terminal and without time of its own makes each screen a function of boards, keys and an instant: the
// golden files of testdata/top are made so. A key alone does not break a hold, because rows move and keys are pressed
// by accident.

package main

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/console/board"
	"github.com/interlock-go/interlock/driver"
)

// topView is what top shows below its header.
type topView int

const (
	viewLocks  topView = iota // the table of all locks
	viewLock                  // one of them
	viewGraph                 // who waits for whom
	viewEvents                // what has happened
	viewHelp
)

// topPrompt is what top asks for in its last line.
//
// While it asks, every key goes to edit.
type topPrompt int

const (
	promptNone topPrompt = iota
	promptFilter
	promptBreak // the name of the lock whose hold must be ended
)

// topModel is what top shows and how it answers to keys. It knows no terminal: a key and a board change it, and frame
// draws it. It has no mutex; the loop of top alone uses it.
//
// What is derived from the board (rows, cycles) is made anew with each, and what the user has chosen (order, filter,
// selection) outlives it.
type topModel struct {
	board    *board.Board    // never nil; not changed here
	interval time.Duration   // between two looks
	rows     []topRow        // locks of board that match filter, in order
	cycles   map[string]bool // ids of locks that are in a cycle

	order  topOrder
	filter string
	view   topView

	at   int    // the selected row; 0 if there is none, -1 in a printed board
	atID string // its lock, which stays selected while it is there
	from int    // the first row or line that is shown

	open     string // the lock of viewLock
	openHold int    // which of its holders is selected

	prompt topPrompt
	input  string      // what was typed to the prompt
	target board.Event // the hold that promptBreak is about

	note string // about the last key; the next one takes it away

	width, height int // of the screen, in cells
}

// topAction is what a key wants of the loop.
//
// The model has no engine and no screen, so it asks the loop to act.
type topAction struct {
	quit   bool
	broken *board.Event // a hold to end
}

// newTopModel returns a model of an empty board on a screen of 80x24. An empty board has the schema version 0, by which
// warnings tells it from an engine without locks.
func newTopModel(order topOrder, interval time.Duration) *topModel {
	m := &topModel{order: order, interval: interval, width: 80, height: 24}
	m.take(&board.Board{})
	return m
}

// take shows another board.
//
// m.board is shared with the poller's history, so nothing here writes into it.
func (m *topModel) take(b *board.Board) {
	m.board, m.cycles = b, inCycles(b)
	m.sort()
}

// sort makes the rows anew. The lock that was selected stays so; if it has gone, the one in its place is selected. The
// lock and not the row stays selected: rows move with each look, and b must not hit what has just moved under the
// cursor.
func (m *topModel) sort() {
	m.rows = topRows(m.board, m.order, m.filter)
	if i := slices.IndexFunc(m.rows, func(r topRow) bool { return r.lock.ID == m.atID }); i >= 0 && m.atID != "" {
		m.at = i
	}
	m.selectRow(m.at)
}

// selectRow selects a row, or the nearest one that there is.
func (m *topModel) selectRow(at int) {
	m.at = max(0, min(at, len(m.rows)-1))
	m.atID = ""
	if len(m.rows) > 0 {
		m.atID = m.rows[m.at].lock.ID
	}
}

// opened is the lock of viewLock, or nil if nobody holds it or waits for it any more. It is looked for by its id each
// time, since a new board has other pointers.
func (m *topModel) opened() *board.Lock {
	for i := range m.board.Locks {
		if m.board.Locks[i].ID == m.open {
			return &m.board.Locks[i]
		}
	}
	return nil
}

// key answers to a key: a character, or one of the words of topkeys.go. Any key takes the note away, so that an old
// answer is not read as the answer to the next key.
func (m *topModel) key(k string) topAction {
	m.note = ""
	if m.prompt != promptNone {
		return m.edit(k)
	}
	// Only in the table: in another view a letter must not change what cannot be seen.
	if order, ok := topOrders[k]; ok && m.view == viewLocks {
		m.order = order
		m.sort()
		m.selectRow(0) // what is sorted by is at the top
		return topAction{}
	}
	switch k {
	case "q":
		return topAction{quit: true}
	case "?":
		m.show(viewHelp)
	case "g":
		m.show(viewGraph)
	case "e":
		m.show(viewEvents)
	case "b":
		m.askBreak()
	// The filter that is there stands ready to be edited.
	case "/":
		m.view, m.prompt, m.input = viewLocks, promptFilter, m.filter
	case keyEnter:
		if m.view == viewLocks && len(m.rows) > 0 {
			m.show(viewLock)
			m.open, m.openHold = m.atID, 0
		}
	// Neither ends top, because users often press them once more than is needed.
	case keyEscape, keyBackspace:
		m.back()
	default:
		m.move(k)
	}
	return topAction{}
}

// show changes to a view, or back to the locks if it is shown already: so the same key opens and closes it.
func (m *topModel) show(v topView) {
	if m.view == v {
		v = viewLocks
	}
	m.view, m.from = v, 0
}

// back leaves a view, and from the locks takes away the filter.
func (m *topModel) back() {
	if m.view == viewLocks && m.filter != "" {
		m.filter = ""
		m.sort()
	}
	m.view, m.from = viewLocks, 0
}

// move goes up and down: to another lock, to another holder, or through lines. j and k are those of vi and less.
func (m *topModel) move(k string) {
	page := max(1, m.room()-1)
	by, ok := map[string]int{
		"j": 1, keyDown: 1, "k": -1, keyUp: -1, keyPageDown: page, " ": page, keyPageUp: -page,
		keyHome: -maxMove, keyEnd: maxMove,
	}[k]
	if !ok {
		return
	}
	one := by == 1 || by == -1
	switch l := m.opened(); {
	case m.view == viewLocks:
		m.selectRow(m.at + by)
	case m.view == viewLock && one && l != nil && m.openHold+by >= 0 && m.openHold+by < len(l.Holders):
		m.openHold += by
	default:
		m.from = max(0, m.from+by) // frame knows the end
	}
}

// maxMove is further than any list is long.
const maxMove = 1 << 30

// edit answers to a key while top asks for something. A filter works as it is typed.
//
// The letters that are commands elsewhere are text here; only Enter, Escape and Backspace are not.
func (m *topModel) edit(k string) topAction {
	asked := m.prompt
	switch {
	case k == keyEscape:
		m.prompt = promptNone
		// Escape takes the filter away, and breaks nothing.
		if asked == promptFilter {
			m.filter = ""
		} else {
			m.note = "not broken"
		}
	case k == keyEnter:
		m.prompt = promptNone
		if asked == promptBreak {
			return m.confirm()
		}
	case k == keyBackspace:
		_, size := utf8.DecodeLastRuneInString(m.input)
		m.input = m.input[:len(m.input)-size]
	case isCharacter(k):
		m.input += k
	}
	if asked == promptFilter && m.prompt == promptFilter {
		m.filter = m.input
	}
	if asked == promptFilter {
		m.sort()
	}
	return topAction{}
}

// topOrder is what top sorts locks by.
//
// The words are those of --sort; their first letters are the keys.
type topOrder string

const (
	// The first is the default.
	byWaiters topOrder = "waiters" // the most first
	byAge     topOrder = "age"     // held for the longest first
	byLease   topOrder = "lease"   // the lease that ends next first
	byName    topOrder = "name"
)

// topOrders are all orders, by the key that chooses them.
var topOrders = map[string]topOrder{"w": byWaiters, "a": byAge, "l": byLease, "n": byName}

// String returns the order. It, Set and Type make topOrder a flag.
func (o *topOrder) String() string { return string(*o) }

// Set accepts the orders that exist.
func (o *topOrder) Set(s string) error {
	for _, order := range topOrders {
		if s == string(order) {
			*o = order
			return nil
		}
	}
	return errors.New("must be waiters, age, lease or name")
}

// Type names the value in help texts.
func (o *topOrder) Type() string { return "ORDER" }

// topRow is a lock with what it is sorted by. They are found once for each board, and not in each comparison.
type topRow struct {
	lock         *board.Lock
	since, until time.Time // of the oldest hold and the next end; zero if unknown or not held
}

// topRows are the locks of a board that match a filter, in an order. Locks that are alike stay in the board's order, by
// name, so that rows do not jump from look to look.
//
// A filter is a part of a text and no expression: it is typed in a hurry, and dots in host names should be dots.
func topRows(b *board.Board, order topOrder, filter string) []topRow {
	rows := make([]topRow, 0, len(b.Locks))
	filter = strings.ToLower(filter)
	for i := range b.Locks {
		l := &b.Locks[i]
		if filter != "" && !matches(l, filter) {
			continue
		}
		row := topRow{lock: l}
		for j := range l.Holders {
			row.since = earlier(row.since, l.Holders[j].Since)
			row.until = earlier(row.until, l.Holders[j].Until)
		}
		rows = append(rows, row)
	}
	compare := map[topOrder]func(x, y topRow) int{
		byWaiters: func(x, y topRow) int { return cmp.Compare(len(y.lock.Waiters), len(x.lock.Waiters)) },
		byAge:     func(x, y topRow) int { return compareKnown(x.since, y.since) },
		byLease:   func(x, y topRow) int { return compareKnown(x.until, y.until) },
	}[order]
	if compare != nil { // a board is sorted by name
		slices.SortStableFunc(rows, compare)
	}
	return rows
}

// earlier is the earlier of two instants, of which zero means unknown.
func earlier(x, y time.Time) time.Time {
	if x.IsZero() || !y.IsZero() && y.Before(x) {
		return y
	}
	return x
}

// compareKnown orders instants, with unknown ones at the end. Unknown is not old: engines that tell no age would
// otherwise fill the top of the table.
func compareKnown(x, y time.Time) int {
	if x.IsZero() || y.IsZero() {
		return cmp.Compare(btoi(x.IsZero()), btoi(y.IsZero()))
	}
	return x.Compare(y)
}

// btoi makes a bool comparable: false comes before true.
func btoi(b bool) int {
	if b {
		return 1
	}
	return 0
}

// matches reports whether the lock's name or kind, or somebody who holds it or waits for it, contains the text, which
// is in lower case. Waiters count too: the question is often where a process hangs, and not what it has.
func matches(l *board.Lock, text string) bool {
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return strings.Contains(strings.ToLower(w), text) })
	}
	return has(l.Name, string(l.Kind)) ||
		slices.ContainsFunc(l.Holders, func(h board.Holder) bool { return has(h.Client, h.Owner, h.Label) }) ||
		slices.ContainsFunc(l.Waiters, func(w board.Waiter) bool { return has(w.Client, w.Owner, w.Label) })
}

// inCycles are the ids of the locks for which owners wait in a cycle.
func inCycles(b *board.Board) map[string]bool {
	ids := map[string]bool{}
	for i := range b.Edges {
		if e := &b.Edges[i]; e.Cycle {
			ids[board.ID(e.Kind, e.Name)] = true
		}
	}
	return ids
}

// askBreak begins to break the selected hold, or notes why that cannot be. The target is kept as it is now: a holder
// that comes while the name is typed is not hit.
//
// The token goes along as in the command break: the engine compares it in the step that ends the hold.
func (m *topModel) askBreak() {
	l, h, why := m.selectedHold()
	switch off := m.breakOff(); {
	case off != "":
		why = off
	// Without one a break would hit whoever holds the lock by then.
	case why == "" && h.Token == 0:
		why = "this hold has no token by which it could be told from a later one"
	}
	if why != "" {
		m.note = why
		return
	}
	m.prompt, m.input = promptBreak, ""
	m.target = board.Event{Kind: l.Kind, Name: l.Name, Client: h.Client, Owner: h.Owner, Label: h.Label, Token: h.Token}
}

// breakOff says why b breaks nothing here: because top was started without --allow-break, or because the engine cannot.
// It is empty before the first look. The engine's own words say what to do instead, as on files.
func (m *topModel) breakOff() string {
	if why := m.board.Knows.Break.Why; why != "" {
		return "b is off: " + oneLine(why)
	}
	return ""
}

// selectedHold is the hold that b is about, or why that is not clear. A lock with several holders is no single hold, so
// one of them has to be chosen in the lock's own view.
func (m *topModel) selectedHold() (l *board.Lock, h *board.Holder, why string) {
	at := 0
	switch {
	case m.view == viewLock:
		l, at = m.opened(), m.openHold
	case m.view == viewLocks && len(m.rows) > 0:
		l = m.rows[m.at].lock
		if len(l.Holders) > 1 {
			return nil, nil, fmt.Sprintf("%d holders: open the lock with Enter and select one", len(l.Holders))
		}
	}
	if l == nil || len(l.Holders) == 0 {
		return nil, nil, "no hold is selected"
	}
	return l, &l.Holders[min(at, len(l.Holders)-1)], ""
}

// confirm breaks the hold if its lock's name was typed, as it is or as it is shown. A name with a control character can
// be typed only as it is shown, in quotes.
func (m *topModel) confirm() topAction {
	if m.input != m.target.Name && m.input != printable(m.target.Name) {
		m.note = "not broken: what was typed is not " + printable(m.target.Name)
		return topAction{}
	}
	// A copy: the next b overwrites m.target while the engine is asked.
	target := m.target
	m.note = "breaking " + printable(target.Name) + " ..."
	return topAction{broken: &target}
}

// answered notes what became of a hold that was to be broken. The board shows the end with its next look; the note is
// there at once.
func (m *topModel) answered(kind driver.Kind, name string, err error) {
	m.note = fmt.Sprintf("%s (%s) is broken", printable(name), kind)
	if err != nil {
		m.note = "not broken: " + message(err)
	}
}
