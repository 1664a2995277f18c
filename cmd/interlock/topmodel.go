// What top shows and how it answers to keys, without a terminal, so that tests can drive it. toploop.go gives it keys
// and boards; topview.go draws it, toprows.go sorts its locks, topbreak.go asks before a break. A model without a
// terminal and without time of its own makes each screen a function of boards, keys and an instant: the golden files of
// testdata/top are made so.

package main

import (
	"slices"
	"time"
	"unicode/utf8"

	"github.com/interlock-go/interlock/console/board"
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
