//go:build linux || darwin || dragonfly || freebsd || netbsd || openbsd || windows

package filelock

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.Looker = (*Driver)(nil)

// Look describes one lock: it opens its file, asks for the mark of a holder, and reads the record; see [Driver.Locks].
// It takes no lock.
func (d *Driver) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	none := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	switch {
	case !tellsHolders:
		return none, fmt.Errorf("file: looking for holders on this system: %w", driver.ErrUnsupported)
	case !traits(true).Supports(key.Kind):
		return none, fmt.Errorf("file: locks of kind %s: %w", key.Kind, driver.ErrUnsupported)
	}
	if err := ctx.Err(); err != nil {
		return none, err
	}
	d.stopLingering() // what this driver has released must not be shown
	l := lister{dir: d.dir, prefix: key.Name}
	info, held, err := l.look(fileName(key))
	if err != nil || !held || info.Name != key.Name {
		return none, err
	}
	return info, nil
}
