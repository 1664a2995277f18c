package memlock

import (
	"context"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.Looker = (*Driver)(nil)

// Look describes one lock; of one that is not in use it returns kind and name. It does not wait.
func (d *Driver) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	none := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	if !slices.Contains(kinds, key.Kind) {
		return none, fmt.Errorf("locks of kind %q: %w", key.Kind, driver.ErrUnsupported)
	}
	info, inUse, err := d.look(ctx, key)
	if err != nil || !inUse {
		return none, err
	}
	return info, nil
}
