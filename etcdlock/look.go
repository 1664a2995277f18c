// Look, the reading of one lock: a listing of inspect.go with one name.
//
// An operator's question about one lock must not cost a reading of all locks, which is why it is not Locks with a
// filter.

package etcdlock

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/interlock-go/interlock/driver"
)

var _ driver.Looker = (*Driver)(nil)

// Look reads the keys of one lock as of one revision, in one round trip unless there are more than 500.
func (d *Driver) Look(ctx context.Context, key driver.Key) (driver.LockInfo, error) {
	found := driver.LockInfo{Kind: key.Kind, Name: key.Name}
	if !slices.Contains(kinds, key.Kind) {
		return found, fmt.Errorf("etcd: locks of kind %q: %w", key.Kind, driver.ErrUnsupported)
	}
	bounded, leave, err := d.enterCall(ctx)
	if err != nil {
		return found, d.sorted(ctx, "look at", key.Name, err)
	}
	defer leave()
	var unread error
	l := &listing{d: d, kind: key.Kind, yield: func(info driver.LockInfo, err error) bool {
		found, unread = info, err
		return true
	}}
	// A lock's keys are listed as in Locks. There is only one lock here, so yield is called at most once.
	_, err = l.run(bounded, d.names.queuePrefix(key))
	// Without an error a lock that cannot be read would look as if it were free.
	if err := cmp.Or(err, unread); err != nil {
		return found, d.sorted(ctx, "look at", key.Name, err)
	}
	return found, nil
}
