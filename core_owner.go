package interlock

import (
	"container/heap"
	"iter"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"weak"

	"github.com/interlock-go/interlock/driver"
)

// owner is one logical activity, which may spread over goroutines. It travels in contexts, because goroutines have no
// identity. See docs/adr/0009.
type owner struct {
	id string // shown to operators; for a named owner, the name that the engine compares

	// Guards holds. It is a leaf: it may be taken under Client.mu, and nothing that takes a mutex is called under it.
	mu    sync.Mutex
	holds holdings

	// How many goroutines wait as this owner, of all clients. It is 0 while only the goroutine that made an anonymous
	// owner can wait.
	waits atomic.Int32
	named bool
}

type ownerKey struct{}

// add notes a hold of o, until remove.
func (o *owner) add(l *Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holds.add(l)
}

// remove forgets a hold of o. It does nothing if l is not there.
func (o *owner) remove(l *Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.holds.remove(l)
}

// holdsAny reports whether o has a hold of anything, lost ones included.
func (o *owner) holdsAny() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.holds.any()
}

// several reports whether o has more than one hold, of any locks.
func (o *owner) several() bool {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.holds.several()
}

// on returns the holds on the lock of that key, by whichever client. The slice is a copy, so that the caller may take
// Client.mu.
func (o *owner) on(key driver.Key) []*Lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	return slices.Collect(o.holds.onLock(key))
}

// first returns the oldest hold on that lock of c for which f returns true, or nil. f is called under owner.mu and
// takes no mutex.
func (o *owner) first(c *core, key driver.Key, f func(*Lease) bool) *Lease {
	o.mu.Lock()
	defer o.mu.Unlock()
	for l := range o.holds.onLock(key) {
		if l.m.c == c && f(l) {
			return l
		}
	}
	return nil
}

// has reports whether o has a hold on that lock of c, or has lost one and not unlocked it yet.
func (o *owner) has(c *core, key driver.Key) bool {
	return o.first(c, key, func(*Lease) bool { return true }) != nil
}

// liveHold returns the oldest live hold of o on key, or nil. It notices holds that have just ended, and tries again
// then. The caller holds Client.mu.
func (c *core) liveHold(o *owner, key driver.Key) *Lease {
	for {
		l := o.first(c, key, func(l *Lease) bool { return l.ended() == nil })
		if l == nil {
			return nil
		}
		if l.check(c.now()); l.ended() == nil {
			return l
		}
	}
}

// liveGrant returns the grant on which o's live hold of key rests, or nil. It returns nil for named owners, because the
// engine counts their holds one by one. The caller holds Client.mu.
func (c *core) liveGrant(o *owner, key driver.Key) *grant {
	if o.named {
		return nil
	}
	if l := c.liveHold(o, key); l != nil {
		return l.g
	}
	return nil
}

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

// nameTable knows the named owners of this process. It keeps none of them alive: contexts, waits and holds keep an
// owner, and the garbage collector finds a name that nobody uses. Counting uses was refused, because nobody says when a
// context is thrown away (docs/adr/0009).
type nameTable struct {
	mu     sync.Mutex // guards owners; a leaf
	owners map[string]weak.Pointer[owner]
}

// names is for all clients: an owner may hold by several of them. It is never replaced.
var names = nameTable{owners: make(map[string]weak.Pointer[owner])}

// owner returns the owner of that name, and makes it if nobody uses the name.
func (t *nameTable) owner(name string) *owner {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.owners[name].Value(); o != nil {
		return o
	}
	name = strings.Clone(name) // not a part of a larger string, such as the message that it was cut from
	o := &owner{id: name, named: true}
	t.owners[name] = weak.Make(o)
	runtime.AddCleanup(o, t.forget, name)
	return o
}

// known returns the owner of that name, or nil if nobody of this process uses the name.
func (t *nameTable) known(name string) *owner {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owners[name].Value()
}

// waits returns how many goroutines of this process wait as the owner of that name.
func (t *nameTable) waits(name string) int {
	if o := t.known(name); o != nil {
		return int(o.waits.Load())
	}
	return 0
}

// forget removes name, unless another owner has got it since. The garbage collector calls it, in a goroutine of its
// own.
func (t *nameTable) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, known := t.owners[name]; known && p.Value() == nil {
		delete(t.owners, name)
	}
}

// allHeldLater returns all holds of o, live or lost, on mutexes that come after m.
func (o *owner) allHeldLater(m *lock) (above []*Lease) {
	o.mu.Lock()
	defer o.mu.Unlock()
	for l := range o.holds.all() {
		if l.m.key().Kind == driver.KindMutex && compare(l.m, m) > 0 {
			above = append(above, l)
		}
	}
	return above
}
