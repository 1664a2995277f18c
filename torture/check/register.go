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

// marks are who passed the fence of one name: the newest writer, and the newest reader.
type marks struct{ writer, reader *register.Entry }

// checkFence is K2: once a holder has touched a fenced number, nobody older does. Readers do not keep each other away,
// and what each of them reads is the same as long as it passes.
func (r *record) checkFence() *Verdict {
	v := &Verdict{
		Check: "K2",
		Claim: "nobody older than the newest holder passes the fence, and no reader sees a write between two of " +
			"its reads",
	}
	newest, reads := map[string]*marks{}, map[stake]int{}
	for i := range r.log {
		e := &r.log[i]
		if !e.Fenced || e.Stale {
			continue
		}
		v.Of++
		m := newest[e.Name]
		if m == nil {
			m = &marks{}
			newest[e.Name] = m
		}
		m.pass(v, e)
		if !e.Shared {
			continue
		}
		if read, again := reads[stakeOf(e)]; again && read != e.Value {
			v.fault("%s: process %d with token %d read %d, and then %d", e.Name, e.Proc, e.Token, read, e.Value)
		}
		reads[stakeOf(e)] = e.Value
	}
	return v
}

// pass takes in a request that the fence let pass.
func (m *marks) pass(v *Verdict, e *register.Entry) {
	for _, last := range []*register.Entry{m.writer, m.reader} {
		if last == nil || last.Shared && e.Shared {
			continue
		}
		if e.Token < last.Token || e.Token == last.Token && e.Nonce != last.Nonce {
			v.fault("%s: process %d with token %d passed after process %d with token %d", e.Name, e.Proc, e.Token,
				last.Proc, last.Token)
		}
	}
	switch {
	case !e.Shared:
		m.writer = e
	case m.reader == nil || e.Token > m.reader.Token:
		m.reader = e
	}
}
