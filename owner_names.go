package interlock

import (
	"runtime"
	"strings"
	"sync"
	"weak"
)

// nameTable knows the named owners of this process, so that one name is one owner. It keeps none of them alive: an
// owner is kept by contexts, waits and holds, and a name that nobody uses is forgotten when the garbage collector finds
// that out. Counting uses instead is no choice, because nobody tells when a context is thrown away.
type nameTable struct {
	mu     sync.Mutex // guards owners; a leaf
	owners map[string]weak.Pointer[owner]
}

// names is for all clients: an owner may hold by several of them.
var names = nameTable{owners: make(map[string]weak.Pointer[owner])}

// owner returns the owner of that name.
func (t *nameTable) owner(name string) *owner {
	t.mu.Lock()
	defer t.mu.Unlock()
	if o := t.owners[name].Value(); o != nil {
		return o
	}
	name = strings.Clone(name) // and not the message that it was cut from
	o := &owner{id: name, named: true}
	t.owners[name] = weak.Make(o)
	runtime.AddCleanup(o, t.forget, name)
	return o
}

// known returns the owner of that name, or nil if nobody of this process uses it.
func (t *nameTable) known(name string) *owner {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.owners[name].Value()
}

// forget takes name out, unless it has been given to another owner since.
func (t *nameTable) forget(name string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if p, known := t.owners[name]; known && p.Value() == nil {
		delete(t.owners, name)
	}
}
