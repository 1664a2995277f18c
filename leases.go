package interlock

import "iter"

// list is some leases in the order in which they came. It is linked through the leases themselves: it nearly always has
// one member, for which a slice would cost more than the link.
type list struct{ first *Lease }

// chain says whose list it is. A lease is in at most one list of each.
type chain int

const (
	ofGrant chain = iota // the live holds on a grant
	ofOwner              // what an owner has not unlocked yet
	chains               // how many there are
)

// add puts l at the end.
func (s *list) add(by chain, l *Lease) {
	end := &s.first
	for *end != nil {
		end = &(*end).next[by]
	}
	*end = l
}

// remove takes l out, if it is there.
func (s *list) remove(by chain, l *Lease) {
	for at := &s.first; *at != nil; at = &(*at).next[by] {
		if *at == l {
			*at, l.next[by] = l.next[by], nil
			return
		}
	}
}

// all yields the members. The one that has just been yielded may be taken out.
func (s *list) all(by chain) iter.Seq[*Lease] {
	return func(yield func(*Lease) bool) {
		for l := s.first; l != nil; {
			next := l.next[by]
			if !yield(l) {
				return
			}
			l = next
		}
	}
}
