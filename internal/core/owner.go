package core

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

// Owner is one logical activity, which may spread over goroutines. It travels in contexts, because goroutines have no
// identity. See docs/rationale.md, Owners.
type Owner struct {
	ID string // shown to operators; for a named owner, the name that the engine compares

	// Guards holds. It is a leaf: it may be taken under Machine.Mu, and nothing that takes a mutex is called under it.
	Mu    sync.Mutex
	Holds Holdings

	// How many goroutines wait as this owner, of all clients. It is 0 while only the goroutine that made an anonymous
	// owner can wait.
	Waits atomic.Int32
	Named bool
}

// OwnerKey is the key of the value of a context that is the owner: a *Owner.
type OwnerKey struct{}

// add notes a hold of o, until remove.
func (o *Owner) add(l *Hold) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	o.Holds.Add(l)
}

// Remove forgets a hold of o. It does nothing if l is not there.
func (o *Owner) Remove(l *Hold) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	o.Holds.Remove(l)
}

// HoldsAny reports whether o has a hold of anything, lost ones included.
func (o *Owner) HoldsAny() bool {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	return o.Holds.Any()
}

// several reports whether o has more than one hold, of any locks.
func (o *Owner) several() bool {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	return o.Holds.Several()
}

// On returns the holds on the lock of that key, by whichever client. The slice is a copy, so that the caller may take
// Machine.Mu.
func (o *Owner) On(key driver.Key) []*Hold {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	return slices.Collect(o.Holds.OnLock(key))
}

// First returns the oldest hold on that lock of c for which f returns true, or nil. f is called under Owner.Mu and
// takes no mutex.
func (o *Owner) First(c *Machine, key driver.Key, f func(*Hold) bool) *Hold {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	for l := range o.Holds.OnLock(key) {
		if l.Lock.Core == c && f(l) {
			return l
		}
	}
	return nil
}

// Has reports whether o has a hold on that lock of c, or has lost one and not unlocked it yet.
func (o *Owner) Has(c *Machine, key driver.Key) bool {
	return o.First(c, key, func(*Hold) bool { return true }) != nil
}

// LiveHold returns the oldest live hold of o on key, or nil. It notices holds that have just ended, and tries again
// then. The caller holds Machine.Mu.
func (c *Machine) LiveHold(o *Owner, key driver.Key) *Hold {
	for {
		l := o.First(c, key, func(l *Hold) bool { return l.Ended() == nil })
		if l == nil {
			return nil
		}
		if l.Check(c.Now()); l.Ended() == nil {
			return l
		}
	}
}

// LiveEngineHold returns the grant on which o's live hold of key rests, or nil. It returns nil for named owners,
// because the engine counts their holds one by one. The caller holds Machine.Mu.
func (c *Machine) LiveEngineHold(o *Owner, key driver.Key) *EngineHold {
	if o.Named {
		return nil
	}
	if l := c.LiveHold(o, key); l != nil {
		return l.Engine
	}
	return nil
}

// fewHolds is up to how many holds of an owner are searched one by one.
const fewHolds = 8

// Holdings is what an owner has not unlocked yet, of all clients. Nearly always that is one hold or two, which stand in
// one list. An owner with more than a few has a list for each lock, so that nothing it does takes longer the more it
// holds. The zero value has none. Guarded by Owner.Mu.
type Holdings struct {
	few  list // all of them, ofOwner, while many is nil
	Many *manyHolds
}

// manyHolds are the holds of an owner that has had more than a few at once. It stays until the last of them is
// unlocked.
type manyHolds struct {
	n     int
	On    map[driver.Key]list // ofOwner
	order holdHeap            // all of them; nil until a Multi has asked for the last one
}

// Any reports whether there is a hold.
func (h *Holdings) Any() bool { return h.few.First != nil || h.Many != nil }

// Several reports whether there is more than one.
func (h *Holdings) Several() bool {
	if h.Many != nil {
		return h.Many.n > 1
	}
	return h.few.First != nil && h.few.First.Links[ofOwner].Next != nil
}

// Add puts l in. With the hold that is one too many for the short list, all go over to manyHolds.
func (h *Holdings) Add(l *Hold) {
	if h.Many == nil && h.few.shorter(fewHolds) {
		h.few.add(ofOwner, l)
		return
	}
	if h.Many == nil {
		h.Many = &manyHolds{On: make(map[driver.Key]list)}
		for other := range h.few.All(ofOwner) {
			h.few.remove(ofOwner, other)
			h.Many.add(other)
		}
	}
	h.Many.add(l)
}

// shorter reports whether s, ofOwner, has fewer than n members. It walks at most n.
func (s *list) shorter(n int) bool {
	for range s.All(ofOwner) {
		if n--; n <= 0 {
			return false
		}
	}
	return true
}

// Remove takes l out. It does nothing if l is not in a list.
func (h *Holdings) Remove(l *Hold) {
	switch {
	case l.Links[ofOwner].prev == nil:
	case h.Many == nil:
		h.few.remove(ofOwner, l)
	default:
		h.Many.remove(l)
		if h.Many.n == 0 {
			h.Many = nil
		}
	}
}

// OnLock yields the holds on the lock of that key, by whichever client.
func (h *Holdings) OnLock(key driver.Key) iter.Seq[*Hold] {
	return func(yield func(*Hold) bool) {
		held := h.few
		if h.Many != nil {
			held = h.Many.On[key]
		}
		for l := range held.All(ofOwner) {
			if l.Lock.Key() == key && !yield(l) {
				return
			}
		}
	}
}

// All yields every hold, in no order. It costs as much as there are holds.
func (h *Holdings) All() iter.Seq[*Hold] {
	if h.Many == nil {
		return h.few.All(ofOwner)
	}
	return func(yield func(*Hold) bool) {
		for _, held := range h.Many.On {
			for l := range held.All(ofOwner) {
				if !yield(l) {
					return
				}
			}
		}
	}
}

// Last returns the hold that comes last in the order in which a Multi takes locks, or nil if there is none. With many
// holds it costs the logarithm of their number.
func (h *Holdings) Last() (last *Hold) {
	if h.Many != nil {
		return h.Many.last()
	}
	for l := range h.few.All(ofOwner) {
		if last == nil || LaterInMulti(l, last) {
			last = l
		}
	}
	return last
}

// add puts l in: one look in the map, and one in the heap if there is one.
func (h *manyHolds) add(l *Hold) {
	held := h.On[l.Lock.Key()]
	held.add(ofOwner, l)
	h.On[l.Lock.Key()] = held
	h.n++
	if h.order != nil {
		heap.Push(&h.order, l)
	}
}

// remove takes l out, which must be in. The heap finds it by Hold.rank, without a search.
func (h *manyHolds) remove(l *Hold) {
	held := h.On[l.Lock.Key()]
	held.remove(ofOwner, l)
	if held.First == nil {
		delete(h.On, l.Lock.Key())
	} else {
		h.On[l.Lock.Key()] = held
	}
	h.n--
	if h.order != nil {
		heap.Remove(&h.order, int(l.rank))
	}
}

// last returns the hold that is last in the order of a Multi. The first call makes the heap, at the cost of all holds;
// from then on add and remove keep it.
func (h *manyHolds) last() *Hold {
	if h.order == nil { // only an owner that mixes a Multi with so many holds needs the heap
		h.order = make(holdHeap, 0, h.n)
		for _, held := range h.On {
			for l := range held.All(ofOwner) {
				l.rank = int32(len(h.order))
				h.order = append(h.order, l)
			}
		}
		heap.Init(&h.order)
	}
	return h.order[0]
}

// LaterInMulti reports whether a comes after b in the order in which a Multi takes locks. Holds of other kinds than
// mutexes come first: no Multi waits for those.
func LaterInMulti(a, b *Hold) bool {
	if mutex := a.Lock.Key().Kind == driver.KindMutex; mutex != (b.Lock.Key().Kind == driver.KindMutex) {
		return mutex
	}
	return Compare(a.Lock, b.Lock) > 0
}

// holdHeap has in front the hold that comes last in the order of a Multi. Each hold knows its place (Hold.rank), so
// that it can be taken out.
type holdHeap []*Hold

// Len is for package heap.
func (h holdHeap) Len() int { return len(h) }

// Less is for package heap.
func (h holdHeap) Less(i, j int) bool { return LaterInMulti(h[i], h[j]) }

// Swap is for package heap.
func (h holdHeap) Swap(i, j int) {
	h[i], h[j] = h[j], h[i]
	h[i].rank, h[j].rank = int32(i), int32(j)
}

// Push is for package heap.
func (h *holdHeap) Push(x any) {
	l := x.(*Hold)
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
// context is thrown away (docs/rationale.md, Owners).
type nameTable struct {
	Mu     sync.Mutex // guards owners; a leaf
	Owners map[string]weak.Pointer[Owner]
}

// Names is for all clients: an owner may hold by several of them. It is never replaced.
var Names = nameTable{Owners: make(map[string]weak.Pointer[Owner])}

// Owner returns the owner of that name, and makes it if nobody uses the name.
func (t *nameTable) Owner(name string) *Owner {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	if o := t.Owners[name].Value(); o != nil {
		return o
	}
	name = strings.Clone(name) // not a part of a larger string, such as the message that it was cut from
	o := &Owner{ID: name, Named: true}
	t.Owners[name] = weak.Make(o)
	runtime.AddCleanup(o, t.forget, name)
	return o
}

// known returns the owner of that name, or nil if nobody of this process uses the name.
func (t *nameTable) known(name string) *Owner {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	return t.Owners[name].Value()
}

// Waits returns how many goroutines of this process wait as the owner of that name.
func (t *nameTable) Waits(name string) int {
	if o := t.known(name); o != nil {
		return int(o.Waits.Load())
	}
	return 0
}

// forget removes name, unless another owner has got it since. The garbage collector calls it, in a goroutine of its
// own.
func (t *nameTable) forget(name string) {
	t.Mu.Lock()
	defer t.Mu.Unlock()
	if p, known := t.Owners[name]; known && p.Value() == nil {
		delete(t.Owners, name)
	}
}

// AllHeldLater returns all holds of o, live or lost, on mutexes that come after m.
func (o *Owner) AllHeldLater(m *Lock) (above []*Hold) {
	o.Mu.Lock()
	defer o.Mu.Unlock()
	for l := range o.Holds.All() {
		if l.Lock.Key().Kind == driver.KindMutex && Compare(l.Lock, m) > 0 {
			above = append(above, l)
		}
	}
	return above
}
