package check

import "github.com/interlock-go/interlock/torture/history"

// wait is the time from the call of a Lock to its answer.
type wait struct {
	name     string
	share    history.Share // empty: alone
	proc     int
	gor      int
	from, to history.Instant // to is 0 if it had no answer
	// part says that it was asked for together with another, both or none, and is the one that is taken first: while the other is
	// waited for it may be held, which nobody records.
	part bool
	// last says that it is the other one of these: what it waits for is asked for when the first is had, and nobody records when that is.
	last bool
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
				w.part, with.part = w.name < with.name, with.name < w.name
				w.last, with.last = with.part, w.part
			}
		case open[at] != nil:
			open[at].to = e.At
		}
	}
	return all
}
