//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"testing"
	"time"
)

func TestTurn_LastsForWhoComesBackAtOnce_AndNotForLong(t *testing.T) {
	p, start := usualPace(), time.Now()
	after := func(began, freed time.Duration) *turn {
		return &turn{began: start.Add(-began), freed: start.Add(-freed)}
	}
	for name, row := range map[string]struct {
		turn *turn
		want bool
	}{
		"never had it":        {&turn{}, false},
		"just gave it back":   {after(p.turn/2, p.comeback/2), true},
		"came back late":      {after(p.turn/2, p.comeback), false},
		"had it for too long": {after(p.turn, p.comeback/2), false},
	} {
		if got := row.turn.lasts(p, start); got != row.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

// A turn is only for a driver that asks again at once. No other may keep waiters waiting.
func TestTurn_KnowsWhoComesBack(t *testing.T) {
	p, start := usualPace(), time.Now()
	for name, row := range map[string]struct {
		held, away time.Duration
		before     bool
		want       bool
	}{
		"at once":                             {p.turn / 2, p.comeback / 2, false, true},
		"late":                                {p.turn / 2, p.comeback, true, false},
		"late, after the end of its turn":     {p.turn, p.comeback, true, true},
		"late, though it never looped":        {p.turn, p.comeback, false, false},
		"much later, after the end of a turn": {p.turn, forgets, true, false},
	} {
		turn := turn{began: start, back: row.before}
		turn.free(p, start.Add(row.held))
		turn.ask(p, start.Add(row.held+row.away))
		turn.ask(p, start.Add(row.held+row.away+p.comeback)) // a try and then the wait
		if turn.back != row.want {
			t.Errorf("%s: got %v", name, turn.back)
		}
	}
}

func TestTurn_WhileItLasts_TheReleaserMayGoFirst(t *testing.T) {
	d := open(t, t.TempDir())
	d.pace = endless // however slow this machine is
	first, second := newID(), newID()
	mustTry(t, d, first, "x")
	f := openFile(t, d, "x")
	f.joinLine() // somebody waits
	release(t, d, first, "x")
	mustTry(t, d, second, "x")
	release(t, d, second, "x")
}
