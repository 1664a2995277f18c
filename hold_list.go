package interlock

import "iter"

// The list type of leases under a grant (hold_grant.go) and under an owner (owner_holds.go).

// list is some leases in the order in which they came. It is linked through the leases themselves: nearly always it has
// one member, for which a slice would cost more than the links. Adding and removing cost the same for any length.
type list struct{ first *Lease }

// links are the neighbours of a lease in one list.
type links struct {
	next *Lease // nil at the end
	prev *Lease // of the first lease it is the last; nil outside of a list
}

// listKind says which list: a lease is in at most one of each kind, so its links are an array.
type listKind int

const (
	ofGrant   listKind = iota // the live holds on a grant
	ofOwner                   // what an owner has not unlocked yet, lost holds included
	listKinds                 // how many there are
)

// add puts l at the end. l must not be in a list of that kind.
func (s *list) add(by listKind, l *Lease) {
	if s.first == nil {
		s.first, l.in[by].prev = l, l
		return
	}
	last := s.first.in[by].prev
	last.in[by].next, l.in[by].prev, s.first.in[by].prev = l, last, l
}

// remove takes l out. It does nothing if l is in no list of that kind; it must not be in another one.
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

// all yields the members, the oldest first. The loop may take out the one that was just yielded, and no other.
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
