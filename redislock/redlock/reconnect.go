// What the portable layer is told of reconnections: each node's, because a majority may have forgotten a hold. node.go
// listens to the drivers of the nodes.

package redlock

import (
	"sync"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.Reconnector = (*Driver)(nil)

// reconnections is who heeds them. All nodes share one.
type reconnections struct {
	mu   sync.Mutex // guards heed; nobody is told under it
	heed map[*func()]struct{}
}

// OnReconnect has f called when there is a new connection to a node; see [driver.Reconnector]. A node that has
// forgotten a hold takes one vote from it, as with any renewal, and its holder is told when no majority is left.
func (d *Driver) OnReconnect(f func()) (stop func()) {
	r := d.reconnections
	r.mu.Lock()
	defer r.mu.Unlock()
	r.heed[&f] = struct{}{}
	return func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.heed, &f)
	}
}

// tell tells those who heed reconnections. It runs in a goroutine of a node's driver.
func (r *reconnections) tell() {
	r.mu.Lock()
	all := make([]func(), 0, len(r.heed))
	for f := range r.heed {
		all = append(all, *f)
	}
	r.mu.Unlock()
	for _, f := range all {
		f()
	}
}
