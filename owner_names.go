package interlock

import (
	"runtime"
	"strings"
	"sync"
	"weak"
)

// One owner for each name in this process, whichever context or client uses it.

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
