// The rule about the set: which nodes decide together, and how that changes. Nothing here asks anybody: guard.go brings
// the marks that marks.go has read, and acts on the verdict.

package redlock

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
)

// Two programs that name different servers may both have a majority. So a node votes only for clients that name the
// nodes of its set, all of them and no other. The verdicts:
//
//   - A set is made when a client has the marks of all its nodes, and none has a set yet. It needs no agreement between
//     clients: those that name the same servers make the same set.
//   - A node without a mark takes the place in the set of which this client knows that it is the node's: the place has
//     the node's name, or had this node before in the client's life. It does so when it has rested. A majority, or all
//     nodes, must vouch for the set.
//   - A set is changed by clients that name both the former and the current one. Their votes are enough for a majority
//     of either (see quorumOf), so that they exclude clients of both kinds. They put the current set into the marks
//     beside the former one. The first client that names the current set alone takes the former one out.

// errIncomplete says that the nodes are no set yet.
var errIncomplete = errors.New("the servers have not all been there at once yet, so they are no set, and do not vote")

// setError says that a node belongs to another set than the client's. It matches nothing: the vote that a node has
// given before this was found out must be undone.
type setError struct {
	text     string
	conflict bool // not only of one node that nobody knows
}

func (e *setError) Error() string { return e.text }

// changeHint is the advice in every setError.
const changeHint = "name the same servers in all programs; the package documentation says under " +
	"\"Changing the servers\" how to change them"

// sets is what a driver knows of the marks of its nodes.
type sets struct {
	names           []string // of the nodes; constant, as the next two
	current, former []int    // which nodes are of each set; former is nil unless the set is being changed

	mu    sync.Mutex // guards what follows
	marks []*mark    // nil where a node has not said anything yet
	seen  []string   // the ID that a node had when it was found to be of the set, or empty
	made  []*set     // sets that this client has made, of nodes that could not have forgotten anything
}

// writing is what the mark of a node should become.
type writing struct {
	id        string
	set, next *set
}

// newSets returns what is known before a node has said anything.
func newSets(dials []dialer) *sets {
	s := &sets{marks: make([]*mark, len(dials)), seen: make([]string, len(dials))}
	for i, dial := range dials {
		s.names = append(s.names, dial.place())
		if !dial.dropped {
			s.current = append(s.current, i)
		}
		if dial.former {
			s.former = append(s.former, i)
		}
	}
	return s
}

// quorum is how many votes are enough: a majority, and while the set is changed a majority of the former and of the
// current one, whichever nodes they are of. So it may be more than either needs.
func (s *sets) quorum() int {
	all := len(s.names)
	enough := func(set []int) int { return all - len(set) + len(set)/2 + 1 }
	if s.former == nil {
		return enough(s.current)
	}
	return max(enough(s.current), enough(s.former))
}

// judge takes the mark of a node and says whether its votes count: they do if both results are nil. If the first is
// not, they will when the mark has become that.
func (s *sets) judge(i int, m *mark) (*writing, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.marks[i] = m
	if err := s.twice(); err != nil {
		return nil, err
	}
	var w *writing
	var err error
	if s.former == nil {
		w, err = s.judgeAlone(i)
	} else {
		w, err = s.judgeBoth(i)
	}
	if err == nil && m.state == stateOld { // nor may its mark be written, which would say that it remembers all
		w, err = nil, errRests
	}
	if w == nil && err == nil {
		s.seen[i] = m.id
	}
	return w, err
}

// twice finds a server that was named twice: it would have two votes.
func (s *sets) twice() error {
	for i, m := range s.marks {
		for j, o := range s.marks[:i] {
			if m != nil && o != nil && m.id == o.id {
				return &setError{fmt.Sprintf(
					"%s and %s are one server, which would have two votes; name each server once",
					s.names[j], s.names[i]), true}
			}
		}
	}
	return nil
}

// judgeAlone is judge for a client that names one set.
func (s *sets) judgeAlone(i int) (*writing, error) {
	l, err := s.setOf(s.current, nil)
	if err != nil {
		return nil, err
	}
	if l == nil {
		if l, err = s.make(s.current, 1); err != nil {
			return nil, err
		}
	}
	// A set of a later turn, which one of the nodes has, is the one that counts.
	for _, j := range s.current {
		if o := s.marks[j]; o != nil && o.set != nil && l.has(o.id) && o.set.turn >= l.turn && !o.set.same(l) {
			return nil, s.mismatch(j, o.set)
		}
	}
	switch m := s.marks[i]; {
	case l.same(m.set):
		return nil, nil //nolint:nilnil // its votes count
	case l.same(m.next): // no client names the former set any more
		return &writing{m.id, l, nil}, nil
	default:
		id, err := s.placeOf(i, l, s.current)
		return &writing{id, l, nil}, err
	}
}

// judgeBoth is judge while the set is being changed.
func (s *sets) judgeBoth(i int) (*writing, error) {
	former, current, err := s.both()
	if err != nil {
		return nil, err
	}
	m, stays := s.marks[i], slices.Contains(s.current, i)
	switch {
	case m.in(current):
		return nil, nil //nolint:nilnil // its votes count
	case former == nil && !stays: // the change is over, and the node votes besides
		if m.resting() { // a client of before the change may have a hold that the node has forgotten
			return nil, errRests
		}
		return nil, nil //nolint:nilnil // likewise
	case former == nil:
		id, err := s.placeOf(i, current, s.current)
		return &writing{id, current, nil}, err
	case !slices.Contains(s.former, i):
		if current == nil {
			return nil, errIncomplete
		}
		id, err := s.placeOf(i, current, s.current)
		return &writing{id, nil, current}, err
	case !m.in(former): // first its place there, from which its ID follows
		id, err := s.placeOf(i, former, s.former)
		return &writing{id, former, nil}, err
	case !stays: // it votes as long as the change lasts
		return nil, nil //nolint:nilnil // likewise
	case current == nil:
		return nil, errIncomplete
	default:
		return &writing{m.id, former, current}, nil
	}
}

// both returns the former and the current set. The former one is nil if the change is over. The current one is nil as
// long as it cannot be made.
func (s *sets) both() (former, current *set, err error) {
	former, err = s.setOf(s.former, nil)
	current, other := s.setOf(s.current, former)
	if s.isOver(current) {
		return nil, current, nil
	}
	if err := cmp.Or(err, other); err != nil {
		return nil, nil, err
	}
	if former == nil {
		if former, err = s.make(s.former, 1); err != nil {
			return nil, nil, err
		}
	}
	if current == nil && !slices.ContainsFunc(s.former, func(i int) bool {
		return slices.Contains(s.current, i) && (s.marks[i] == nil || !s.marks[i].in(former))
	}) {
		if current, err = s.make(s.current, former.turn+1); errors.Is(err, errIncomplete) {
			err = nil // the nodes of the former one can have their places all the same
		}
	}
	return former, current, err
}

// isOver reports whether a client that names the current set alone was there already.
func (s *sets) isOver(current *set) bool {
	return slices.ContainsFunc(s.current, func(i int) bool {
		return s.marks[i] != nil && current.same(s.marks[i].set)
	})
}

// setOf returns the set of which these nodes are, as far as their marks say; nil if none of them has one. A set that is
// not meant, because it is the former one, may be in their marks too.
func (s *sets) setOf(nodes []int, not *set) (*set, error) {
	var fit []*set
	at, other := 0, (*set)(nil)
	for _, i := range nodes {
		if s.marks[i] == nil {
			continue
		}
		for _, l := range s.marks[i].sets() {
			switch {
			case l.same(not) || slices.ContainsFunc(fit, l.same):
			case s.fits(l, nodes):
				fit = append(fit, l)
			case not != nil && s.marks[i].in(not): // an earlier change of the former set, which was given up
			default:
				at, other = i, l
			}
		}
	}
	if len(fit) > 1 {
		fit = slices.DeleteFunc(fit, func(l *set) bool { return !s.named(l, nodes) })
		if len(fit) != 1 {
			return nil, errIncomplete // until the others have answered
		}
	}
	// One node of another set takes no vote from a majority that agrees, even if its set would do for these nodes and
	// that of the majority does not. A set of another turn is no such stray, but what the majority's is changed to.
	agreed := s.agreed(nodes, not)
	switch {
	case len(fit) == 1 && (agreed == nil || agreed.turn != fit[0].turn):
		return fit[0], nil
	case len(fit) == 0 && other == nil:
		return nil, nil //nolint:nilnil // none, as the comment says
	case agreed != nil:
		return agreed, nil
	default:
		return nil, s.mismatch(at, other)
	}
}

// agreed returns the set of which a majority of these nodes is; nil if there is none. The one that is not meant, of
// which they may be as well, is none.
func (s *sets) agreed(nodes []int, not *set) *set {
	for _, i := range nodes {
		if s.marks[i] == nil {
			continue
		}
		for _, l := range s.marks[i].sets() {
			if !l.same(not) && len(l.seats) == len(nodes) && s.members(l, nodes) > len(nodes)/2 {
				return l
			}
		}
	}
	return nil
}

// members counts the nodes that say that they are of a set.
func (s *sets) members(l *set, nodes []int) (n int) {
	for _, i := range nodes {
		if s.marks[i] != nil && s.marks[i].in(l) {
			n++
		}
	}
	return n
}

// fits reports whether a set may be that of these nodes: there are as many, and those that are of any set are in it.
func (s *sets) fits(l *set, nodes []int) bool {
	return len(l.seats) == len(nodes) && !slices.ContainsFunc(nodes, func(i int) bool {
		m := s.marks[i]
		return m != nil && len(m.sets()) > 0 && !l.has(m.id)
	})
}

// named reports whether a set has the names of those nodes of which no mark says where they belong: they have not
// answered, or have come back empty.
func (s *sets) named(l *set, nodes []int) bool {
	return !slices.ContainsFunc(nodes, func(i int) bool {
		m := s.marks[i]
		return (m == nil || len(m.sets()) == 0) && !slices.Contains(l.names(), s.names[i])
	})
}

// make makes a set of these nodes, of which none has one.
func (s *sets) make(nodes []int, turn int) (*set, error) {
	var seats []seat
	fresh := true
	for _, i := range nodes {
		m := s.marks[i]
		if m == nil {
			return nil, fmt.Errorf("%w: %s has not answered", errIncomplete, s.names[i])
		}
		if turn == 1 && (m.state == stateOK || m.state == stateOld) {
			fresh = false // the nodes were in use before, so those that have no mark have lost it
		}
		seats = append(seats, seat{m.id, s.names[i]})
	}
	l := newSet(turn, seats)
	if fresh && !slices.ContainsFunc(s.made, l.same) {
		s.made = append(s.made, l)
	}
	return l, nil
}

// placeOf returns the ID that a node is to have in a set. It returns an error if the node has no place there, or must
// rest, or if the set has nobody to vouch for it.
func (s *sets) placeOf(i int, l *set, nodes []int) (id string, err error) {
	m := s.marks[i]
	if id = s.seatOf(i, l, nodes); id == "" && len(m.sets()) > 0 {
		return "", s.mismatch(i, m.sets()[0])
	}
	if id == "" {
		return "", &setError{fmt.Sprintf(
			"it has no mark, and its name, %s, is none of those with which the set was made: %s; if it is one of "+
				"these servers, which came back empty, use that name; otherwise %s",
			s.names[i], strings.Join(l.names(), ", "), changeHint), false}
	}
	isNew := id == m.run[:idLength] && slices.ContainsFunc(s.made, l.same)
	if m.resting() && !isNew {
		return "", errRests
	}
	all := !slices.ContainsFunc(nodes, func(j int) bool { return s.marks[j] == nil })
	if !all && s.members(l, nodes) <= len(nodes)/2 {
		return "", errIncomplete
	}
	return id, nil
}

// seatOf returns the ID that a node has in a set: its own; or, if it has lost its mark, that of the place which has its
// name, or which it had before. It returns an empty one if there is none.
func (s *sets) seatOf(i int, l *set, nodes []int) string {
	m := s.marks[i]
	switch {
	case l.has(m.id):
		return m.id
	case len(m.sets()) > 0:
		return ""
	}
	for _, seat := range l.seats {
		taken := slices.ContainsFunc(nodes, func(j int) bool { return s.marks[j] != nil && s.marks[j].id == seat.id })
		if !taken && (seat.name == s.names[i] || seat.id == s.seen[i]) {
			return seat.id
		}
	}
	return ""
}

// mismatch is the error for a node that is of another set than the client's.
func (s *sets) mismatch(i int, l *set) error {
	return &setError{fmt.Sprintf(
		"%s is of a set of %d servers (%s), and this program names %d; programs that name different servers may "+
			"hold a lock at the same time: %s",
		s.names[i], len(l.seats), strings.Join(l.names(), ", "), len(s.names), changeHint), true}
}
