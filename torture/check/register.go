package check

import "github.com/interlock-go/interlock/torture/register"

// checkUpdates is K1: what the register of the fence has at the end is what was added to it.
func (r *record) checkUpdates(f *Figures) *Verdict {
	v := &Verdict{Check: "K1", Claim: "no update of a fenced number is lost"}
	t := r.touches()
	for i := range r.log {
		switch e := &r.log[i]; {
		case e.Stale:
			f.Stale.add(t.overruns(e))
		case !e.Fenced:
			if e.Write {
				f.PlainWrites++
			}
			if lost, overrun := t.plain(e); lost {
				f.PlainLost.add(overrun)
			}
		case e.Write:
			f.Increments++
			v.Of++
			if e.Value != e.Before+1 {
				v.fault("%s: process %d with token %d wrote %d over %d", e.Name, e.Proc, e.Token, e.Value, e.Before)
			}
		}
	}
	if v.Of == 0 {
		v.Vacuous = "nothing was written"
	}
	return v
}

// checkFence is K2: once a holder has touched a fenced number, nobody older does.
func (r *record) checkFence() *Verdict {
	v := &Verdict{Check: "K2", Claim: "nobody older than the newest holder passes the fence"}
	newest := map[string]register.Entry{}
	for _, e := range r.log {
		if !e.Fenced || e.Stale {
			continue
		}
		v.Of++
		last := newest[e.Name]
		if e.Token < last.Token || e.Token == last.Token && e.Nonce != last.Nonce {
			v.fault("%s: process %d with token %d passed after process %d with token %d", e.Name, e.Proc, e.Token, last.Proc, last.Token)
		}
		newest[e.Name] = e
	}
	return v
}
