package interlock

import "iter"

// list is some leases in the order in which they came. It is linked through the leases themselves: it nearly always has
// one member, for which a slice would cost more than the links. To add and to remove one costs the same however many
// there are.
type list struct{ first *Lease }

// links are a lease's in a list.
type links struct {
	next *Lease // nil at the end
	prev *Lease // of the first it is the last; nil outside of a list
}

// listKind says whose list it is. A lease is in at most one list of each kind.
type listKind int

const (
	ofGrant   listKind = iota // the live holds on a grant
	ofOwner                   // what an owner has not unlocked yet
	listKinds                 // how many there are
)

// add puts l at the end.
func (s *list) add(by listKind, l *Lease) {
	if s.first == nil {
		s.first, l.in[by].prev = l, l
		return
	}
	last := s.first.in[by].prev
	last.in[by].next, l.in[by].prev, s.first.in[by].prev = l, last, l
}

// remove takes l out, if it is there: it must not be in another list of that kind.
func (s *list) remove(by listKind, l *Lease) {
	at := &l.in[by]
	switch {
	case at.prev == nil:
		return
	case s.first == l:
		s.first = at.next
	default:
		at.prev.in[by].next = at.next
	}
	switch {
	case at.next != nil:
		at.next.in[by].prev = at.prev
	case s.first != nil:
		s.first.in[by].prev = at.prev // it was the last
	}
	*at = links{}
}

// all yields the members. The one that has just been yielded may be taken out.
func (s *list) all(by listKind) iter.Seq[*Lease] {
	return func(yield func(*Lease) bool) {
		for l := s.first; l != nil; {
			next := l.in[by].next
			if !yield(l) {
				return
			}
			l = next
		}
	}
}
