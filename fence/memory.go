package fence

import (
	"errors"
	"sync"
)

// MemoryGuard is a fence in the memory of one process: for a server whose clients hold the locks, and for tests. The
// zero value works. It is safe for concurrent use and must not be copied.
//
// It forgets everything with the process, and then lets an old holder pass. It keeps its marks, some 200 bytes and the
// name, for every resource that was ever checked until [MemoryGuard.Forget]. Where clients choose the names, let them
// choose only ones that exist.
type MemoryGuard struct {
	mu        sync.Mutex // guards resources; nothing blocks under it
	resources map[string]*remembered
}

// remembered is what is known of one resource.
type remembered struct {
	mu    sync.Mutex // guards marks; held while the effect of Do runs
	marks marks
}

// Check lets s touch the resource, or returns a [*StaleError]. It waits while a Do on the resource runs.
//
// What the caller does after Check is not one step with it: a newer holder may come in between. Use it for the first
// touch of something that Do changes later, and [MemoryGuard.Do] for writes.
func (g *MemoryGuard) Check(resource string, s Stamp) error {
	return g.Do(resource, s, func() error { return nil })
}

// Do calls effect if s may touch the resource, and returns effect's error, or a [*StaleError] without having called it.
// Until effect has returned nobody else touches the resource through this guard, so check and effect are one step. A
// mark that was raised stays raised when effect fails. effect must not use the guard for the same resource: it would
// wait for itself.
func (g *MemoryGuard) Do(resource string, s Stamp, effect func() error) error {
	if err := validate(resource, s); err != nil {
		return err
	}
	if effect == nil {
		return errors.New("fence: Do needs a function; use Check to touch the resource without an effect")
	}
	r := g.resource(resource)
	r.mu.Lock()
	defer r.mu.Unlock()
	raised, err := r.marks.admit(resource, s)
	if err != nil {
		return err
	}
	r.marks = raised
	return effect()
}

// Forget removes what is known of a resource that is gone for good. If the resource were used again, an old holder
// could pass.
func (g *MemoryGuard) Forget(resource string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.resources, resource)
}

// resource returns what is known of the resource, and makes it on the first touch.
func (g *MemoryGuard) resource(name string) *remembered {
	g.mu.Lock()
	defer g.mu.Unlock()
	if r := g.resources[name]; r != nil {
		return r
	}
	if g.resources == nil {
		g.resources = make(map[string]*remembered)
	}
	r := &remembered{}
	g.resources[name] = r
	return r
}
