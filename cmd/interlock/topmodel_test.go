package main

import (
	"strings"
	"testing"

	"github.com/interlock-go/interlock"
	"github.com/interlock-go/interlock/console/board"
)

func TestTop_KeepsTheSelectedLock_WhenTheOrderChanges(t *testing.T) {
	t.Parallel()
	m := pressed(topBoard(), 80, 24, "n", "j", "j")
	if m.atID != "mutex/accounts:9" {
		t.Fatalf("selected is %q", m.atID)
	}
	b := topBoard()
	b.Locks = b.Locks[2:]
	m.take(b)
	if m.atID != "mutex/accounts:9" || m.at != 0 {
		t.Errorf("selected is %q, row %d", m.atID, m.at)
	}
	b = topBoard()
	b.Locks = b.Locks[:2] // it has gone
	m.take(b)
	if m.at < 0 || m.at > 1 || m.atID != b.Locks[m.at].ID {
		t.Errorf("selected is %q, row %d", m.atID, m.at)
	}
}

func TestTop_BreaksWhatWasAsked_AfterItsNameAlone(t *testing.T) {
	t.Parallel()
	press := func(m *topModel, keys ...string) (got *board.Event) {
		for _, k := range keys {
			if a := m.key(k); a.broken != nil {
				got = a.broken
			}
		}
		return got
	}
	find := []string{"/", "b", "o", "s", "s", keyEnter}
	name := []string{"b", "b", "o", "s", "s"}
	m := pressed(topBoard(), 80, 24, find...)
	if e := press(m, append(name, "x", keyEnter)...); e != nil || !strings.Contains(m.note, "not broken") {
		t.Errorf("the wrong name breaks %v, and it says %q", e, m.note)
	}
	if e := press(m, append(name, keyEscape, keyEnter)...); e != nil {
		t.Errorf("a question that was left breaks %v", e)
	}
	m = pressed(topBoard(), 80, 24, find...)
	press(m, name...)
	m.take(&board.Board{SchemaVersion: 1}) // whatever comes meanwhile
	e := press(m, keyEnter)
	if e == nil || e.Name != "boss" || e.Kind != interlock.KindElection || e.Token != 14 {
		t.Errorf("the right name breaks %+v", e)
	}
	off := topBoard()
	off.Knows.Break = board.Knowledge{Why: whyNoBreak}
	m = pressed(off, 80, 24, find...)
	e = press(m, append(name, keyEnter)...)
	if e != nil || !strings.Contains(pressed(off, 80, 24, "b").note, whyNoBreak) {
		t.Errorf("without --allow-break it breaks %v", e)
	}
	m = pressed(topBoard(), 80, 24, "/", "c", "o", "n", "v", "e", "r", "t", keyEnter)
	if e := press(m, "b"); e != nil || m.prompt != promptNone || !strings.Contains(m.note, "2 holders") {
		t.Errorf("of several holders it breaks %v, %q", e, m.note)
	}
	e = press(m, keyEnter, "j", "b", "c", "o", "n", "v", "e", "r", "t", keyEnter)
	if e == nil || e.Token != 17 {
		t.Errorf("the second holder is %+v", e)
	}
}
