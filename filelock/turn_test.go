//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd

package filelock

import (
	"testing"
	"time"
)

func TestTurn_LastsForWhoComesBackAtOnce_AndNotForLong(t *testing.T) {
	start := time.Now()
	after := func(began, freed time.Duration) *turn {
		return &turn{began: start.Add(-began), freed: start.Add(-freed)}
	}
	for name, row := range map[string]struct {
		turn *turn
		want bool
	}{
		"never had it":        {&turn{}, false},
		"just gave it back":   {after(turnTime/2, comeback/2), true},
		"came back late":      {after(turnTime/2, comeback), false},
		"had it for too long": {after(turnTime, comeback/2), false},
	} {
		if got := row.turn.lasts(start); got != row.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestTurn_WhileItLasts_TheReleaserMayGoFirst(t *testing.T) {
	d := open(t, t.TempDir())
	f := openFile(t, d, "x")
	defer f.close()
	f.joinLine() // somebody waits
	first := newID()
	later := time.Now().Add(time.Hour) // the turn lasts, however slow this machine is
	kept := openFile(t, d, "x")
	kept.turn = turn{began: later, freed: later}
	d.mu.Lock()
	d.idle.put(kept)
	d.mu.Unlock()
	mustTry(t, d, first, "x")
	release(t, d, first, "x")
}
