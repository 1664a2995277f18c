// Convert, the change of mode of a read/write lock: an attempt of acquire.go beside the hold that is converted.

package redislock

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/internal/word"
)

// Convert asks for another mode of a read/write lock beside a hold of the same owner (docs/rationale.md, Conversions);
// see [driver.Converter]. It costs one round trip, and an upgrade that has to wait one message more. The hold beside
// stays until the caller releases it. If that hold is over, or ends during the wait, the error matches driver.ErrLost.
func (d *Driver) Convert(ctx context.Context, beside string, r *driver.Request) (driver.Grant, error) {
	switch {
	case r.Kind != driver.KindRWMutex:
		return driver.Grant{}, fmt.Errorf("redis: another mode of a lock of kind %q: %w", r.Kind, driver.ErrUnsupported)
	case !word.Is(beside):
		return driver.Grant{}, errGone(r.Key) // no hold has this ID
	}
	return d.acquire(ctx, r, nil, beside)
}
