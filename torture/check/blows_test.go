package check

import (
	"maps"
	"testing"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/run"
	"github.com/interlock-go/interlock/torture/target"
)

// A fault hits a holder if the client that has it holds a lock at that instant; a fault of the servers if somebody
// does. In the story process 0 holds from 11 to 19 ms, and process 1 from 31 to 39.
func TestFaults_AreCountedByKind_AndWhetherTheyHitAHolder(t *testing.T) {
	blow := func(fault target.Fault, proc int, from history.Instant) run.Blow {
		return run.Blow{Fault: fault, Proc: proc, From: from, To: from + 1}
	}
	for _, c := range []struct {
		name          string
		blows         []run.Blow
		spoil         func(s *story)
		want          map[target.Fault]Hits
		holder, first int
	}{
		{name: "none", want: map[target.Fault]Hits{}},
		{
			name: "clients", holder: 2,
			blows: []run.Blow{
				blow(target.Stop, 0, 5*ms), blow(target.Stop, 0, 12*ms), blow(target.Stop, 1, 12*ms),
				blow(target.Cut, 1, 32*ms), blow(target.Cut, 1, 45*ms),
			},
			want: map[target.Fault]Hits{target.Stop: {3, 1}, target.Cut: {2, 1}},
		},
		{
			name: "servers", blows: []run.Blow{blow(target.ServerKill, -1, 12*ms), blow(target.ServerKill, -1, 25*ms)},
			want: map[target.Fault]Hits{target.ServerKill: {2, 1}},
		},
		{
			name: "who is next", blows: []run.Blow{{Fault: target.KillWaiter, Proc: 1, From: 12 * ms, Waits: "a"}},
			first: 1,
			want:  map[target.Fault]Hits{target.KillWaiter: {1, 0}},
		},
		{
			name: "lost by then", blows: []run.Blow{blow(target.Stop, 0, 16*ms)},
			spoil: func(s *story) {
				s.add(0, 15*ms, history.Event{Seq: 1, Op: history.Lost, Phase: history.OK, Name: "a", Token: 100})
			},
			want: map[target.Fault]Hits{target.Stop: {1, 0}},
		},
		{
			name: "killed by then", holder: 1,
			blows: []run.Blow{blow(target.Kill, 0, 12*ms), blow(target.Kill, 0, 16*ms)},
			want:  map[target.Fault]Hits{target.Kill: {2, 1}},
		},
	} {
		s := sound()
		s.blows = c.blows
		if c.spoil != nil {
			c.spoil(s)
		}
		f := s.judge(t).Figures
		if !maps.Equal(f.ByFault, c.want) || f.HolderBlows != c.holder || f.WaiterBlows != c.first ||
			f.Blows != len(c.blows) {
			t.Errorf("%s: got %v, %d at a holder, %d at who was next; want %v, %d, %d", c.name, f.ByFault,
				f.HolderBlows, f.WaiterBlows, c.want, c.holder, c.first)
		}
		var all Figures
		all.Add(f)
		all.Add(f)
		for fault, hits := range all.ByFault {
			if hits != (Hits{2 * c.want[fault].Done, 2 * c.want[fault].Holder}) {
				t.Errorf("%s, twice: got %v", c.name, all.ByFault)
			}
		}
	}
}
