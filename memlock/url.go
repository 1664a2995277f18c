package memlock

import (
	"context"
	"errors"
	"sync"

	"github.com/interlock-go/interlock/driver"
)

// mem:// URLs: one store for each name in the process.

// The registry is reachable only through the mux, so this package has no global variable of its own.
func init() {
	stores := &registry{stores: make(map[string]*store)}
	driver.DefaultMux.Register("mem", stores.open)
}

// registry finds the stores of mem:// URLs by name.
type registry struct {
	// Guards what follows. It is taken before a store's mutex, never after.
	mu     sync.Mutex
	stores map[string]*store
	floor  uint64 // no token of a store that is gone was larger
}

// open returns a client of the store that u names, and makes the store if it is the first. The client is made under mu,
// so that forget cannot drop the store in between.
func (r *registry) open(_ context.Context, u *driver.URL, _ driver.Config) (driver.Driver, error) {
	name, err := nameOf(u)
	if err != nil {
		return nil, err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	s := r.stores[name]
	if s == nil {
		s = newStore(r.floor)
		s.empty = func() { r.forget(name, s) }
		r.stores[name] = s
	}
	return s.open(), nil
}

// nameOf returns the store's name. Its errors show nothing of u: what is too much may be a password.
func nameOf(u *driver.URL) (string, error) {
	switch {
	case u.User != "" || u.Password != "":
		return "", errors.New("mem: the URL has a user, but there is nobody to log in to; write mem://NAME")
	case u.Path != "":
		return "", errors.New("mem: the URL has a path; write mem://NAME without a slash after it")
	case len(u.Hosts) > 1:
		return "", errors.New("mem: the URL has several names; write mem://NAME with one")
	}
	if err := u.Params().Err(); err != nil {
		return "", err
	}
	if len(u.Hosts) == 0 {
		return "", nil
	}
	return u.Hosts[0], nil
}

// forget drops a store that its last client has left, unless another client has opened it meanwhile. Tokens of later
// stores start above its own. So a store of the same name keeps the order although the clock may have gone back.
func (r *registry) forget(name string, s *store) {
	r.mu.Lock()
	defer r.mu.Unlock()
	s.mu.Lock()
	defer s.mu.Unlock()
	// mu was free since the last client closed: another may have opened the store, or another forget may have been
	// here.
	if s.clients > 0 || r.stores[name] != s {
		return
	}
	delete(r.stores, name)
	r.floor = max(r.floor, s.q.highest())
}
