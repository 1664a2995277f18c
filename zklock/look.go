// Look, the reading of one lock. inspect.go reads the queue.
//
// A question about one lock must not list all: it costs what its own queue costs, however many locks there are.

package zklock

import (
	"context"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.Looker = (*Driver)(nil)

// Look reads the queue of one lock. It costs a round trip to see everything that was written before, one for the list,
// and one for each node in it, several of which are read at a time.
func (d *Driver) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	none := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	if !slices.Contains(kinds, key.Kind) {
		return none, fmt.Errorf("zk: locks of kind %q: %w", key.Kind, driver.ErrUnsupported)
	}
	nodes, err := d.nodesOf(ctx, key)
	if err != nil {
		return none, d.explainOperator(ctx, "look at", key.Name, err)
	}
	// A lock without a node is free, or was never used.
	if len(nodes) == 0 {
		return none, nil
	}
	return infoOf(key, nodes), nil
}

// nodesOf reads the queue of a lock as it is now. The ensemble is asked first: an operator who has just released a lock
// elsewhere must not see it held.
func (d *Driver) nodesOf(ctx context.Context, key driver.Key) ([]*seen, error) {
	l, err := d.ready(ctx, nil, reach, false)
	if err != nil {
		return nil, err
	}
	if err := l.agree(ctx); err != nil {
		return nil, err
	}
	return l.queue(ctx, d.tree.lock(key))
}
