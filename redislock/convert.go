package redislock

import (
	"context"
	"fmt"

	"github.com/interlock-go/interlock/driver"
	"github.com/interlock-go/interlock/redislock/internal/word"
)

// Convert takes another mode of a read/write lock beside a hold, in one round trip and, for an upgrade that has to
// wait, one message; see [driver.Converter].
func (d *Driver) Convert(ctx context.Context, beside string, r *driver.Request) (driver.Grant, error) {
	switch {
	case r.Kind != driver.KindRWMutex:
		return driver.Grant{}, fmt.Errorf("redis: another mode of a lock of kind %q: %w", r.Kind, driver.ErrUnsupported)
	case !word.Is(beside):
		return driver.Grant{}, errGone(r.Key) // no hold has this ID
	}
	return d.acquire(ctx, r, nil, beside)
}
