package interlock

import (
	"container/heap"
	"iter"

	"github.com/interlock-go/interlock/driver"
)

// What an owner holds, in lists (hold_list.go). multi.go asks for the last one in its order.

// fewHolds is up to how many holds of an owner are searched one by one.
const fewHolds = 8

// holdings is what an owner has not unlocked yet, of all clients. Nearly always that is one hold or two, which stand in
// one list. An owner with more than a few has a list for each lock, so that nothing it does takes longer the more it
// holds. The zero value has none. Guarded by owner.mu.
type holdings struct {
	few  list // all of them, ofOwner, while many is nil
	many *manyHolds
}

// manyHolds are the holds of an owner that has had more than a few at once. It stays until the last of them is
// unlocked.
type manyHolds struct {
	n     int
	on    map[driver.Key]list // ofOwner
	order holdHeap            // all of them; nil until a Multi has asked for the last one
}

func (h *holdings) any() bool { return h.few.first != nil || h.many != nil }

// several reports whether there is more than one.
func (h *holdings) several() bool {
	if h.many != nil {
		return h.many.n > 1
	}
	return h.few.first != nil && h.few.first.in[ofOwner].next != nil
}

// add puts l in. With the hold that is one too many for the short list, all go over to manyHolds.
func (h *holdings) add(l *Lease) {
	if h.many == nil && h.few.shorter(fewHolds) {
		h.few.add(ofOwner, l)
		return
	}
	if h.many == nil {
		h.many = &manyHolds{on: make(map[driver.Key]list)}
		for other := range h.few.all(ofOwner) {
			h.few.remove(ofOwner, other)
			h.many.add(other)
		}
	}
	h.many.add(l)
}

// shorter reports whether s, ofOwner, has fewer than n members. It walks at most n.
func (s *list) shorter(n int) bool {
	for range s.all(ofOwner) {
		if n--; n <= 0 {
			return false
		}
	}
	return true
}

// remove takes l out. It does nothing if l is not in a list.
func (h *holdings) remove(l *Lease) {
	switch {
	case l.in[ofOwner].prev == nil:
	case h.many == nil:
		h.few.remove(ofOwner, l)
	default:
		h.many.remove(l)
		if h.many.n == 0 {
			h.many = nil
		}
	}
}

// onLock yields the holds on the lock of that key, by whichever client.
func (h *holdings) onLock(key driver.Key) iter.Seq[*Lease] {
	return func(yield func(*Lease) bool) {
		held := h.few
		if h.many != nil {
			held = h.many.on[key]
		}
		for l := range held.all(ofOwner) {
			if l.m.key() == key && !yield(l) {
				return
			}
		}
	}
}

// all yields every hold, in no order. It costs as much as there are holds.
func (h *holdings) all() iter.Seq[*Lease] {
	if h.many == nil {
		return h.few.all(ofOwner)
	}
	return func(yield func(*Lease) bool) {
		for _, held := range h.many.on {
			for l := range held.all(ofOwner) {
				if !yield(l) {
					return
				}
			}
		}
	}
}

// last returns the hold that comes last in the order in which a Multi takes locks, or nil if there is none. With many
// holds it costs the logarithm of their number.
func (h *holdings) last() (last *Lease) {
	if h.many != nil {
		return h.many.last()
	}
	for l := range h.few.all(ofOwner) {
		if last == nil || laterInMulti(l, last) {
			last = l
		}
	}
	return last
}

// add puts l in: one look in the map, and one in the heap if there is one.
func (h *manyHolds) add(l *Lease) {
	held := h.on[l.m.key()]
	held.add(ofOwner, l)
	h.on[l.m.key()] = held
	h.n++
	if h.order != nil {
		heap.Push(&h.order, l)
	}
}

// remove takes l out, which must be in. The heap finds it by Lease.rank, without a search.
func (h *manyHolds) remove(l *Lease) {
	held := h.on[l.m.key()]
	held.remove(ofOwner, l)
	if held.first == nil {
		delete(h.on, l.m.key())
	} else {
		h.on[l.m.key()] = held
	}
	h.n--
	if h.order != nil {
		heap.Remove(&h.order, int(l.rank))
	}
}

// last returns the hold that is last in the order of a Multi. The first call makes the heap, at the cost of all holds;
// from then on add and remove keep it.
func (h *manyHolds) last() *Lease {
	if h.order == nil { // only an owner that mixes a Multi with so many holds needs the heap
		h.order = make(holdHeap, 0, h.n)
		for _, held := range h.on {
			for l := range held.all(ofOwner) {
				l.rank = int32(len(h.order))
				h.order = append(h.order, l)
			}
		}
		heap.Init(&h.order)
	}
	return h.order[0]
}

// laterInMulti reports whether a comes after b in the order in which a Multi takes locks. Holds of other kinds than
// mutexes come first: no Multi waits for those.
func laterInMulti(a, b *Lease) bool {
	if mutex := a.m.key().Kind == driver.KindMutex; mutex != (b.m.key().Kind == driver.KindMutex) {
		return mutex
	}
	return compare(a.m, b.m) > 0
}

// holdHeap has in front the hold that comes last in the order of a Multi. Each hold knows its place (Lease.rank), so
// that it can be taken out.
type holdHeap []*Lease

// Len is for package heap.
func (h holdHeap) Len() int { return len(h) }

// Less is for package heap.
func (h holdHeap) Less(i, j int) bool { return laterInMulti(h[i], h[j]) }

// Swap is for package heap.
func (h holdHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].rank, h[j].rank = int32(i), int32(j)
}

// Push is for package heap.
func (h *holdHeap) Push(x any) {
	l := x.(*Lease)
	l.rank = int32(len(*h))
	*h = append(*h, l)
}

// Pop is for package heap.
func (h *holdHeap) Pop() any {
	last := len(*h) - 1
	l := (*h)[last]
	(*h)[last] = nil
	*h = (*h)[:last]
	return l
}
