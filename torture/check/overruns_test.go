package check

import (
	"slices"
	"testing"

	"github.com/interlock-go/interlock/torture/history"
	"github.com/interlock-go/interlock/torture/register"
)

// Process 0 holds with token 100 and process 1 with token 101. Without a fence a write is lost if another was
// made since its holder read. It counts as an overrun if the lease of one of the two was not to be renewed,
// and had ended by the write.
func TestWhatIsLostAndRefused_IsCountedByItsCause(t *testing.T) {
	plain := func(at history.Instant, proc int, write bool, before, value int) register.Entry {
		return register.Entry{
			At: at, Proc: proc, Write: write, Name: "a", Token: uint64(100 + proc), Nonce: "n", Before: before,
			Value: value,
		}
	}
	refused := func(at history.Instant, token uint64) register.Entry {
		return register.Entry{At: at, Fenced: true, Name: "a", Token: token, Nonce: "n", Stale: true}
	}
	// Both read the same, and the first of them writes last.
	late := []register.Entry{
		plain(12*ms, 0, false, 1, 1), plain(32*ms, 1, false, 1, 1), plain(33*ms, 1, true, 1, 2),
		plain(34*ms, 0, true, 2, 2),
	}
	// The same, and the first of them writes before the other does.
	between := []register.Entry{
		plain(12*ms, 0, false, 1, 1), plain(32*ms, 1, false, 1, 1), plain(33*ms, 0, true, 1, 2),
		plain(34*ms, 1, true, 2, 2),
	}
	none := history.Instant(0)
	for _, c := range []struct {
		name        string
		fixed       history.Instant // the end of process 0's lease if that is not to be renewed
		log         []register.Entry
		lost, stale Causes
	}{
		{"a renewed hold writes late", none, late, Causes{Faults: 1}, Causes{}},
		{"an overrun writes late", 20 * ms, late, Causes{Overruns: 1}, Causes{}},
		{"an overrun writes between", 20 * ms, between, Causes{Overruns: 1}, Causes{}},
		{"a renewed hold writes between", none, between, Causes{Faults: 1}, Causes{}},
		{"a fixed lease that still runs", 40 * ms, late, Causes{Faults: 1}, Causes{}},
		{"an overrun before the holder read", 20 * ms, []register.Entry{
			plain(12*ms, 0, false, 0, 0), plain(30*ms, 0, true, 0, 1), plain(32*ms, 1, false, 1, 1),
			plain(33*ms, 1, true, 3, 2),
		}, Causes{Faults: 1}, Causes{}},
		{"a renewed hold is refused", none, []register.Entry{refused(34*ms, 100)}, Causes{}, Causes{Faults: 1}},
		{
			"an overrun is refused", 20 * ms,
			[]register.Entry{refused(34*ms, 100), refused(35*ms, 100)},
			Causes{},
			Causes{Overruns: 2},
		},
		{"who never had a hold is refused", none, []register.Entry{refused(34*ms, 7)}, Causes{}, Causes{Faults: 1}},
	} {
		s := sound()
		s.log = slices.Concat(s.log, c.log)
		for i := range s.events {
			if e := &s.events[i]; c.fixed != none && e.Proc == 0 && e.Op == history.Acquire {
				e.Fixed, e.Deadline = true, c.fixed
			}
		}
		f := s.judge(t).Figures
		if f.PlainLost != c.lost || f.Stale != c.stale {
			t.Errorf("%s: lost %+v, refused %+v; want %+v, %+v", c.name, f.PlainLost, f.Stale, c.lost, c.stale)
		}
		var twice Figures
		twice.Add(f)
		twice.Add(f)
		if twice.PlainLost.All() != 2*c.lost.All() || twice.Stale.All() != 2*c.stale.All() {
			t.Errorf("%s, twice: lost %+v, refused %+v", c.name, twice.PlainLost, twice.Stale)
		}
	}
}
