// A look at one lock, for operators and for the text of errors. inspect.go has the statement's columns and the list of
// all locks.

package pglock

import (
	"context"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.Looker = (*Driver)(nil)

// Look asks about one lock, in one round trip. The server makes the list of all its locks for it, as for any reader of
// pg_locks, so its cost grows with the number of locks on the server. It returns an info without holders if the lock is
// free or was never used, and an error that matches driver.ErrUnsupported for a kind that the engine does not have.
func (d *Driver) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	none := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	if !slices.Contains(kinds, key.Kind) {
		return none, fmt.Errorf("postgres: locks of kind %q: %w", key.Kind, driver.ErrUnsupported)
	}
	found, err := d.query(ctx, d.text(lookText), textValue(key.Name), textValue(string(key.Kind)))
	switch {
	case err != nil && ctx.Err() != nil:
		return none, ctx.Err()
	case err != nil && d.isUnused(ctx, err):
		return none, nil
	case err != nil:
		return none, d.core.Unavailable("look at", key.Name, err)
	case len(found) == 0:
		return none, nil
	}
	return infoOf(found), nil
}
