// A look at one lock, for operators and for the text of errors. inspect.go has the list of all.

package mysqllock

import (
	"context"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.Looker = (*Driver)(nil)

// Look reads the row of one lock and asks who has it, in one round trip; if somebody has, a second one asks for the
// waiters. It returns an info without holders if the lock is free or was never used, and an error that matches
// driver.ErrUnsupported for a kind that the engine does not have.
func (d *Driver) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	none := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	if !slices.Contains(kinds, key.Kind) {
		return none, fmt.Errorf("mysql: locks of kind %q: %w", key.Kind, driver.ErrUnsupported)
	}
	id := d.idOf(key)
	found, err := d.listHeld(ctx, "id = x'"+id.hex()+"'")
	if err != nil && !d.isUnused(err) {
		return none, d.lookError(ctx, key.Name, err)
	}
	if len(found) == 0 {
		return none, nil
	}
	waits, err := d.listWaits(ctx)
	if err != nil {
		return none, d.lookError(ctx, key.Name, err)
	}
	return found[0].info(waits[id.lock()]), nil
}

// lookError gives an error of the caller's context as it is, and every other one as driver.ErrUnavailable.
func (d *Driver) lookError(ctx context.Context, name string, err error) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	return d.core.Unavailable("look at", name, err)
}
