// How top breaks a hold: the key b asks, the lock's typed name confirms. topmodel.go comes here with the key,
// toploop.go asks the engine and brings the answer. A key alone is not enough, because rows move and keys are pressed
// by accident.

package main

import (
	"fmt"

	"github.com/interlock-go/interlock/console/board"
	"github.com/interlock-go/interlock/driver"
)

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
