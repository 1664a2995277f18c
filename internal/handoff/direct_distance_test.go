package handoff

import (
	"testing"
	"time"
)

// distance is where the clients of one lock are: so far from the engine and from each other, there and back.
type distance struct{ engine, peers time.Duration }

// turn computes how long one turn takes, the hold with the hand-off after it, on a lock for which many wait. The
// engine and the clients take no time of their own. It plays 100 turns by the rules of directs, with the naming as
// early as can be: in the answer to the holder's claim, or with its grant where early is set, as without the rule
// NamedClaimed.
func (d distance) turn(hold time.Duration, direct, early bool) time.Duration {
	const turns = 100
	enters, named := time.Duration(0), d.engine // when the present holder is inside, and when it knows its successor
	for range turns {
		leaves := enters + hold
		pushed := leaves + d.engine // its release goes to the engine, and the push from there
		if !direct || leaves < named {
			if enters, named = pushed, pushed+d.engine; early {
				named = pushed
			}
			continue
		}
		// The engine hears of the release, and of the claim, half a round trip after they were sent;
		// the answer takes as long.
		if enters, named = leaves+d.peers/2, leaves+d.peers/2+d.engine; early {
			named = pushed
		}
	}
	return enters / turns
}

func TestDirect_TheGain_IsAtMostAQuarter_OrAHalfAmongNeighbours_AndNeedsAHoldAsLongAsARoundTrip(t *testing.T) {
	for _, rtt := range []time.Duration{10 * time.Millisecond, 50 * time.Millisecond} {
		apart, near := distance{rtt, rtt}, distance{rtt, 0}
		t.Logf("round trip %v: hold, turn now, direct, direct and named early, direct among neighbours", rtt)
		for _, row := range []struct {
			hold                        time.Duration // in tenths of a round trip, as the others, which are rounded
			now, direct, early, between time.Duration
		}{
			{hold: 1, now: 11, direct: 11, early: 9, between: 11}, // 8.5 on the average of two turns
			{hold: 5, now: 15, direct: 15, early: 10, between: 15},
			{hold: 10, now: 20, direct: 15, early: 15, between: 10},
			{hold: 50, now: 60, direct: 55, early: 55, between: 50},
			{hold: 500, now: 510, direct: 505, early: 505, between: 500},
		} {
			hold := row.hold * rtt / 10
			got := [...]time.Duration{
				apart.turn(hold, false, false), apart.turn(hold, true, false), apart.turn(hold, true, true),
				near.turn(hold, true, false),
			}
			t.Log(hold, got)
			for i, want := range [...]time.Duration{row.now, row.direct, row.early, row.between} {
				if tenths := (got[i] + rtt/20) * 10 / rtt; tenths != want {
					t.Errorf("hold %v, column %d: a turn of %v, %d tenths of a round trip, want %d",
						hold, i, got[i], tenths, want)
				}
			}
		}
	}
}
