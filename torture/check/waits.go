package check

import "github.com/interlock-go/interlock/torture/history"

// wait is the time from the call of a Lock to its answer.
type wait struct {
	name     string
	share    history.Share // empty: alone
	proc     int
	gor      int
	from, to history.Instant // to is 0 if it had no answer
	// first and second are for two locks that are asked for together, both or none. The first may be held while the
	// second is waited for; the second is not asked for until the first is had. Nobody records when that is.
	first, second bool
}

// under reports whether w lasted at some time between two instants.
func (w *wait) under(from, to history.Instant) bool { return w.from < to && (w.to == 0 || w.to > from) }

// waitsOf finds the waits, also those of who was killed meanwhile.
func waitsOf(events []history.Event) []*wait {
	var all []*wait
	life := map[int]int{}
	open := map[place]*wait{}
	for _, e := range events {
		if e.Op == history.Start && e.Phase == "" {
			life[e.Proc]++
		}
		at := place{e.Proc, life[e.Proc], e.Gor, e.Seq}
		switch {
		case e.Op != history.Acquire:
		case e.Phase == history.Call:
			w := &wait{name: e.Name, share: e.Share, proc: e.Proc, gor: e.Gor, from: e.At}
			open[at] = w
			all = append(all, w)
			at.seq--
			if with := open[at]; with != nil && with.to == 0 { // a goroutine waits for one thing at a time
				w.first, with.first = w.name < with.name, with.name < w.name
				w.second, with.second = with.first, w.first
			}
		case open[at] != nil:
			open[at].to = e.At
		}
	}
	return all
}

// waitsFor are waits by the name of the lock.
type waitsFor map[string][]*wait

func (r *record) waits() waitsFor {
	all := waitsFor{}
	for _, w := range waitsOf(r.events) {
		all[w.name] = append(all[w.name], w)
	}
	return all
}
