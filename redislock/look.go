// Look, the reading of one lock. stored.go reads the answer; inspect.go reads many locks.

package redislock

import (
	"context"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.Looker = (*Driver)(nil)

// Look reads one lock, in one round trip; one with very many holders or waiters in one for each 200 of them, so what it
// returns of such a lock is no snapshot. It changes nothing: a hold that has ended but was not cleared yet is not
// shown. With Options.Replicas it waits for the replicas if the lock is an election's, and is driver.ErrUnavailable if
// too few have what it has read. For that it writes what is there already, so the user needs the right to write, and
// a server without memory cannot confirm that nobody leads.
func (d *Driver) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	none := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	if !slices.Contains(kinds, key.Kind) {
		return none, fmt.Errorf("redis: locks of kind %q: %w", key.Kind, driver.ErrUnsupported)
	}
	if d.isClosed() {
		return none, driver.ErrClosed
	}
	name, slot := d.names.lock(key)
	call := &Call{Script: lookScript, Slot: slot, Keys: []string{name}}
	// Who leads is told to those who act on it, so it must not be undone by a failover.
	if d.opts.Replicas > 0 && key.Kind == driver.KindElection {
		call.Script, call.Keys = touchedLookScript, []string{name, d.names.floor(slot)}
		d.waitForReplicas(call)
	}
	var p pages
	for {
		answer := d.acked(call, d.callTwice(ctx, call))
		if answer.Err != nil {
			return none, d.unavailable(ctx, "look at", key, answer.Err)
		}
		if p.add(answer.Text); p.next == nil {
			break
		}
		call.Args = p.next
	}
	// A hold that has ended may not have been cleared yet. Then the lock counts as free.
	if found := d.seen(key, &p); found.err != nil || found.inUse {
		return found.info, found.err
	}
	return none, nil
}
